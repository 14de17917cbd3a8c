"""Small packets tables and entries for the tests of the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Threshold, Verdicts, Window
from skewscope.core.entry import Entry, Timing
from skewscope.core.features import FeatureRows
from skewscope.core.schemas import HTTP, PACKETS
from skewscope.core.tables import Table

MS = 1_000_000


def packets(times_ms: Sequence[float], tap: int = 0, first: int = 1) -> Table:
    """Return a packets table with these times (ms) and frame numbers in order."""
    ts = np.array([round(t * MS) for t in times_ms], dtype=np.int64)
    return Table(
        PACKETS,
        {"ts_ns": ts, "tap": np.full(len(ts), tap), "frame": np.arange(first, first + len(ts))},
    )


def http(times_ms: Sequence[float]) -> Table:
    """Return an http table with these times (ms)."""
    return Table(HTTP, {"ts_ns": np.array([round(t * MS) for t in times_ms], dtype=np.int64)})


def entry(scope: str = "host", needs: Sequence[str] = ("x",), **more: object) -> Entry:
    """Return an entry with one threshold `limit` = 1."""
    fields: dict[str, object] = {
        "number": 99,
        "slug": "test",
        "title": "Test",
        "status": "experimental",
        "severity": "minor",
        "plane": "host",
        "scope": scope,
        "needs": dict.fromkeys(needs, "why"),
        "params": Params({"limit": Threshold(1.0, "1", "why")}),
        "evidence": {"x": "s", "x_ref": "s"},
        "timing": Timing(),
        "causes": (),
        "culprit_kind": "host",
        "culprit_key": "self",
        "hides": (),
        "actions": (),
        "false_positives": (),
        "references": (),
        "texts": {},
    }
    return Entry(**{**fields, **more})  # type: ignore[arg-type]


class Above:
    """A detector that finds where x is above its limit, and counts its windows."""

    STATE: Mapping[str, float] = {"seen": 0.0}

    def __init__(self, params: Params | None = None) -> None:
        self.limit = params.limit if params else 1.0
        self.windows: list[Window] = []

    def step(self, window: Window) -> Verdicts:
        self.windows.append(window)
        window.state["seen"][window.slot] += 1
        x = window["x"]
        state = np.where(x > self.limit, FINDING, CLEAR)
        return Verdicts(
            state, np.clip(x / 10, 0, 1), window.onset_of("x"), {"x": x, "x_ref": np.full(len(x), 0.5)}
        )


def rows(scope: str = "host", **columns: Sequence[float]) -> FeatureRows:
    """Return rows keyed a, b, c, ... of the given columns."""
    size = len(next(iter(columns.values()))) if columns else 0
    keys = [chr(ord("a") + i) for i in range(size)]
    return FeatureRows(scope, keys, {n: np.array(v, dtype=np.float64) for n, v in columns.items()})
