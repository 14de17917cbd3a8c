"""The public Python API: `skewscope.diagnose(paths)` and the sample tables.

import skewscope

report = skewscope.diagnose(["captures/"])
for incident in report.incidents:
    print(incident.condition, incident.culprits[0].id, incident.summary)
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from skewscope.app.inputs import expand
from skewscope.core.directory import Directory, Names
from skewscope.core.report import Report
from skewscope.core.schemas import READ

__all__ = ["InputError", "Report", "diagnose", "tables"]

PathLike = str | os.PathLike[str]
Progress = Callable[[int, int], None]


class InputError(ValueError):
    """No readable input: the message names every path and what is wrong with it."""


def _files(paths: PathLike | Sequence[PathLike]) -> list[Path]:
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found = expand(given)
    if found.problems or not found.files:
        raise InputError("; ".join(found.problems) or "no paths given")
    return found.files


def diagnose(
    paths: PathLike | Sequence[PathLike],
    *,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
) -> Report:
    """Read captures and return the report: incidents, evidence, and what could not be judged.

    `paths` are files, folders or globs. `progress(done_bytes, total_bytes)` is called now and then.
    When `stop()` becomes true the run ends early with a partial report (`report.interrupted`).
    Raises InputError where a path names nothing.
    """
    from skewscope.app import pipeline

    return pipeline.run(_files(paths), progress=progress, stop=stop)


def tables(
    paths: PathLike | Sequence[PathLike],
    name: str,
    format: Literal["arrow", "pandas", "polars"] = "arrow",
) -> Any:
    """Return one sample table (`packets`, `http`, `counters`, `metrics`, ...) of the inputs.

    Ids in counters, metrics, events and requests are texts here. It comes as a `pyarrow.Table`, a pandas
    or a polars data frame; the latter two need that library.
    Raises KeyError, naming the tables there are, for an unknown name.
    """
    from skewscope.app import pipeline

    found, directory = pipeline.read_all(_files(paths))
    if name not in found:
        raise KeyError(f"no table {name!r}; there are {', '.join(sorted(found))}")
    arrow = _with_texts(name, found[name].to_arrow(), directory)
    if format == "arrow":
        return arrow
    if format == "pandas":
        return arrow.to_pandas()
    if format == "polars":
        import polars

        return polars.from_arrow(arrow)
    raise ValueError(f"unknown format {format!r}; use arrow, pandas or polars")


def _with_texts(name: str, table: Any, directory: Directory) -> Any:
    """Replace the ids of what was read beside captures by the texts that they stand for."""
    import pyarrow as pa

    if name not in {schema.name for schema in READ}:
        return table
    texts: dict[str, Names | list[str]] = {
        "source": directory.sources,
        "entity": directory.entities,
        "peer": directory.entities,
        "name": directory.names,
        "labels": directory.labels,
        "fields": directory.texts,
        "key": directory.texts,
    }
    if name == "events":
        texts["kind"] = directory.names
    for column, known in texts.items():
        at = table.schema.get_field_index(column)
        if at >= 0:
            values = pa.array([known[i] for i in range(len(known))], pa.string())
            indices = table.column(at).combine_chunks().cast(pa.int32())
            field = pa.field(
                column, pa.dictionary(pa.int32(), pa.string()), metadata=table.field(at).metadata
            )
            table = table.set_column(at, field, pa.DictionaryArray.from_arrays(indices, values))
    return table
