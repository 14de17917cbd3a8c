"""The contract of a detector: `step(window) -> verdicts`, vectorised over scopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from skewscope.core.tables import Array

CLEAR, FINDING, NO_DATA = 0, 1, 2


@dataclass(frozen=True)
class Threshold:
    """A number that decides, with its unit and the reason for it."""

    value: float
    unit: str
    why: str


@dataclass(frozen=True)
class Params:
    """The thresholds of one condition, read by name as attributes."""

    thresholds: Mapping[str, Threshold]

    def __getattr__(self, name: str) -> float:
        try:
            return self.thresholds[name].value
        except KeyError:
            raise AttributeError(f"no threshold {name!r} in entry.toml") from None


@dataclass
class Window:
    """The needed features of one window [start_ns, end_ns), one row per scope.

    Rows in which a needed feature is NaN never reach the detector: the engine answers "no data"
    for them. `window["name"]` is a float64 column of shape (rows,). `slot` maps rows to the
    detector's state arrays: `window.state["cusum"][window.slot]`.
    """

    start_ns: int
    end_ns: int
    keys: Sequence[str]
    columns: Mapping[str, Array]
    slot: Array
    state: dict[str, Array]
    onset: Mapping[str, Array] = field(default_factory=dict)
    frames: Mapping[str, Array] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    def __len__(self) -> int:
        return len(self.keys)

    def onset_of(self, name: str) -> Array:
        """Return the event time of the sample behind a column (window start where unknown)."""
        given = self.onset.get(name)
        if given is None:
            return np.full(len(self), self.start_ns, dtype=np.int64)
        return np.where(given > 0, given, self.start_ns)


@dataclass
class Verdicts:
    """One verdict per row of the window.

    state int8 (CLEAR, FINDING, NO_DATA); score float64 0..1, the probability that the condition
    holds; onset_ns int64, when it began as far as this detector can tell (0 = this window);
    evidence: float64 columns; their units stand in the entry's `[evidence]` table.
    """

    state: Array
    score: Array
    onset_ns: Array
    evidence: dict[str, Array] = field(default_factory=dict)


class Detector(Protocol):
    """A condition's statistic and nothing else: no clock, no I/O, no timers, no accusation."""

    STATE: Mapping[str, float]
    """Names of the per-scope state arrays (float64) and their initial values."""

    def __init__(self, params: Params) -> None: ...

    def step(self, window: Window) -> Verdicts:
        """Judge every scope of one window and update the state arrays in place."""
        ...
