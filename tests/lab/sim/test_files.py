"""A run as files, read back by the sources, is the run as tables."""

from pathlib import Path

import numpy as np
import pytest

from skewscope.core.directory import Directory
from skewscope.core.schemas import COUNTERS, METRICS
from skewscope.core.tables import Table
from skewscope.lab.sim import files
from skewscope.lab.sim.case import simulate
from skewscope.lab.sim.scenario import draw
from skewscope.sources.documents import Document


def rows(table: Table, d: Directory) -> set[tuple[object, ...]]:
    """Return rows by what they say, ids resolved; where they were read differs by nature."""
    known = np.nan_to_num(table["value"], nan=-12345.0).tolist()
    columns = [
        table["ts_ns"].tolist(),
        [d.entities[n] for n in table["entity"]],
        [d.names[n] for n in table["name"]],
        known,
        table["kind"].tolist(),
    ]
    if table.schema is METRICS:
        columns += [[d.labels[n] for n in table["labels"]], np.nan_to_num(table["bound"], nan=-1.0).tolist()]
    else:
        columns += [table["side"].tolist(), table["ceiling"].tolist()]
    return set(zip(*columns, strict=True))


@pytest.mark.parametrize("name", ["c42.flap", "ok_first_day.experts", "c42.memory"])
def test_files_read_back_are_the_same_samples(name: str, tmp_path: Path) -> None:
    emission = simulate(draw(name, 7, duration_s=21.0)).emission
    directory = Directory()
    parts: dict[str, list[Table]] = {"counters": [], "metrics": []}
    for path in files.write(emission, tmp_path):
        document = Document(path, directory)
        for tables in document.batches():
            for schema in parts:
                if schema in tables:
                    parts[schema].append(tables[schema])
        assert not document.stats.unmapped, (path, document.stats.unmapped)
        document.close()
    for schema in (COUNTERS, METRICS):
        read = rows(Table.concat(schema, parts[schema.name]), directory)
        emitted = rows(emission.tables[schema.name], emission.directory)
        assert emitted - read == set()
        assert read - emitted == set()
