"""Case folders: sample tables as Parquet or as files, and the truth beside them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from skewscope.core.directory import Directory, Tap
from skewscope.core.schemas import SAMPLES
from skewscope.core.tables import Table
from skewscope.lab.bed.truth import write as truth_text
from skewscope.lab.sim import files
from skewscope.lab.sim.case import Case
from skewscope.lab.sim.vantage.emit import Emission

FORMS = ("tables", "files")
NAMES = ("entities", "names", "labels", "texts")


class CaseError(ValueError):
    """A case folder cannot be read; the message names the file."""


def write(case: Case, folder: Path, form: str = "tables") -> None:
    """Write a case to a new or empty folder. The truth stands beside the samples, never among them."""
    folder.mkdir(parents=True, exist_ok=True)
    if form == "tables":
        write_tables(case.emission, folder / "tables")
    else:
        files.write(case.emission, folder)
    (folder / "truth.toml").write_text(truth_text(case.truth()), encoding="utf-8")


def write_tables(emission: Emission, folder: Path) -> None:
    """Write sample tables as Parquet, ids with their directory."""
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    for name, table in emission.tables.items():
        if len(table):
            pq.write_table(table.to_arrow(), folder / f"{name}.parquet", compression="zstd")
    d = emission.directory
    said: dict[str, Any] = {name: _texts(getattr(d, name)) for name in NAMES}
    said |= {
        "addresses": d.addresses,
        "targets": d.targets,
        "sources": d.sources,
        "taps": [t.path for t in d.taps],
        "flows": [[f.a, f.a_port, f.b, f.b_port, f.proto] for f in d.flows],
        "start_ns": emission.start_ns,
    }
    (folder / "directory.json").write_text(json.dumps(said), encoding="utf-8")


def read_tables(folder: Path) -> tuple[dict[str, Table], Directory]:
    """Read what `write_tables` wrote: a table per schema, empty where there is no file; raises CaseError."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        said = json.loads((folder / "directory.json").read_text(encoding="utf-8"))
        directory = Directory(
            addresses=list(said["addresses"]), targets=list(said["targets"]), sources=list(said["sources"])
        )
        for name in NAMES:
            for text in said[name][1:]:
                getattr(directory, name).id(text)
        for index, path in enumerate(said["taps"]):
            directory.taps.append(Tap(index, path))
        from skewscope.core.directory import Flow

        directory.flows.extend(Flow(*f) for f in said["flows"][1:])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CaseError(f"{folder / 'directory.json'}: {error}") from None
    tables = {}
    for schema in SAMPLES:
        path = folder / f"{schema.name}.parquet"
        if not path.exists():
            tables[schema.name] = schema.empty()
            continue
        try:
            arrow = pq.read_table(path)
            columns = {n: arrow.column(n).to_numpy() for n in schema.columns}
            tables[schema.name] = Table(schema, columns)
        except (OSError, ValueError, KeyError, pa.ArrowException) as error:
            raise CaseError(f"{path}: {error}") from None
    return tables, directory


def _texts(names: Any) -> list[str]:
    return [names[n] for n in range(len(names))]
