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
from skewscope.core.report import Report

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
    """Return one sample table (`packets`, `messages`, `http`, ...) of the captures.

    As a `pyarrow.Table`, a pandas or a polars data frame; the latter two need that library.
    Raises KeyError, naming the tables there are, for an unknown name.
    """
    from skewscope.app import pipeline

    found = pipeline.tables(_files(paths))
    if name not in found:
        raise KeyError(f"no table {name!r}; there are {', '.join(sorted(found))}")
    arrow = found[name].to_arrow()
    if format == "arrow":
        return arrow
    if format == "pandas":
        return arrow.to_pandas()
    if format == "polars":
        import polars

        return polars.from_arrow(arrow)
    raise ValueError(f"unknown format {format!r}; use arrow, pandas or polars")
