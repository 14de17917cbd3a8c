"""A run as files, read back by the sources, is the run as tables."""

from pathlib import Path

import numpy as np

from skewscope.core.directory import Directory
from skewscope.core.schemas import COUNTERS, EVENTS, METRICS
from skewscope.core.tables import Table
from skewscope.lab.sim import files
from skewscope.lab.sim.cluster import parse
from skewscope.lab.sim.events import Streams
from skewscope.lab.sim.vantage.emit import emit
from skewscope.lab.sim.workload import synthetic
from skewscope.lab.sim.world import Change, World
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


MIXED = """
[[replica]]
model = "llama70b-tp8-h100"
[[replica]]
model = "llama8b-tp1-h100"
engine = "sglang"
data_parallel = true
"""
EVERYTHING = (
    Change(5.0, "nic_down", (3,), 1.0),
    Change(6.5, "nic_down", (3,), 0.0),
    Change(6.0, "gpu_xid", (9,), 94.0),
    Change(6.0, "pcie_aer_per_s", (1,), 20.0),
    Change(7.0, "pageable", (0,), 2.0),
    Change(8.0, "clock_step_s", (1,), 0.4),
    Change(9.0, "profiler", (2,), 1.0),
)


def test_files_read_back_are_the_same_samples(tmp_path: Path) -> None:
    streams = Streams.of(3)
    cluster = parse("mixed", MIXED, streams.placement)
    demand = synthetic("azure-conv", 6.0, 0.0, 20.0, 40, streams.placement)
    emission = emit(World(cluster, demand, list(EVERYTHING), 20.0, 3).run())
    directory = Directory()
    parts: dict[str, list[Table]] = {"counters": [], "metrics": [], "events": []}
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
    told = {emission.directory.names[n] for n in emission.tables["events"]["kind"]}
    assert told >= KERNEL
    read_back = events(Table.concat(EVENTS, parts["events"]), directory)
    assert read_back == events(emission.tables["events"], emission.directory)


KERNEL = {"gpu.xid", "pcie.aer", "link.down", "link.up", "peermem.error"}


def events(table: Table, d: Directory) -> set[tuple[object, ...]]:
    """Return what the kernels said: time, where, what and its number."""
    columns = [
        table["ts_ns"].tolist(),
        [d.entities[n] for n in table["entity"]],
        [d.names[n] for n in table["kind"]],
        table["code"].tolist(),
    ]
    return {row for row in zip(*columns, strict=True) if row[2] in KERNEL}
