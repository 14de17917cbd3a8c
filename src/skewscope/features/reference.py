"""References that a fault does not teach to itself: robust location and scale per key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skewscope.core.jit import inner, njit
from skewscope.core.tables import Array
from skewscope.features.graph import grow

HISTORY = 64
"""Accepted samples kept per key: enough for a stable median, few enough to follow a slow drift."""

LEARN = 3
"""Samples before a reference is used at all: a baseline of 0.4 s holds three steps of 100 ms."""

GATE = 6.0
"""Samples further than this many scales from the median are kept out of the reference."""

RELEARN = 512
"""After this many rejected samples in a row the level is the new normal (an upgrade, another model)."""

MAX_KEYS = 1 << 16

UNKNOWN = (float("nan"), float("nan"))

# Columns of the state of a row.
COUNT, NEXT, REJECTED, S_COLUMNS = range(4)


class Reference:
    """Median and scale per key over accepted samples; samples beyond the gate are not learned.

    floor: least scale, in the unit of the samples, below which a difference is not worth a gate.
    """

    def __init__(self) -> None:
        self._rows: dict[object, int] = {}
        self._ring = np.zeros((0, HISTORY))
        self._state = np.zeros((0, S_COLUMNS), dtype=np.int64)
        self._summary = np.zeros((0, 2))
        self._known: list[tuple[float, float]] = []
        self._sizes: list[int] = []

    def get(self, key: object) -> tuple[float, float]:
        """Return (median, scale) of a key, NaN while fewer than LEARN samples are known."""
        row = self._rows.get(key)
        return UNKNOWN if row is None else self._known[row]

    def size(self, key: object) -> int:
        """Return how many accepted samples a key has."""
        row = self._rows.get(key)
        return 0 if row is None else self._sizes[row]

    def learn(self, key: object, samples: Array | Sequence[float], floor: float) -> None:
        """Absorb samples float64 (n,) of one key in event-time order."""
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) >= MAX_KEYS:
                return
            row = self._rows[key] = len(self._rows)
            self._known.append(UNKNOWN)
            self._sizes.append(0)
            if row >= len(self._ring):
                self._ring = grow(self._ring, row + 1, 0.0)
                self._state = grow(self._state, row + 1, 0)
                self._summary = grow(self._summary, row + 1, np.nan)
        values = np.asarray(samples, dtype=np.float64)
        count, median, scale = absorb(self._ring, self._state, self._summary, row, values, floor)
        self._sizes[row], self._known[row] = count, (median, scale)


@inner
def _sort(values: Array, n: int) -> None:
    """Sort the first n values in place: a few dozen at most, and often nearly in order."""
    for i in range(1, n):
        value = values[i]
        k = i
        while k > 0 and values[k - 1] > value:
            values[k] = values[k - 1]
            k -= 1
        values[k] = value


@inner
def _summarise(values: Array, n: int, work: Array) -> tuple[float, float]:
    """Return median and scale of the first n values; `work` is float64 (HISTORY,), of any content."""
    for i in range(n):
        work[i] = values[i]
    _sort(work, n)
    median = 0.5 * (work[(n - 1) // 2] + work[n // 2])
    for i in range(n):
        work[i] = abs(work[i] - median)
    _sort(work, n)
    return median, 1.4826 * 0.5 * (work[(n - 1) // 2] + work[n // 2])


@njit
def absorb(
    ring: Array, state: Array, summary: Array, row: int, samples: Array, floor: float
) -> tuple[int, float, float]:
    """Learn the samples of one row; the gate is that of the reference as it was before them.

    Returns the row's count and its summary.
    ring float64 (rows, HISTORY), state int64 (rows, S_COLUMNS), summary float64 (rows, 2), which keeps
    the last summary of at least LEARN samples. samples float64 (n,).
    """
    values, s = ring[row], state[row]
    median, scale = summary[row, 0], summary[row, 1]
    work = np.empty(HISTORY)
    over = np.isfinite(samples).sum() - HISTORY
    for value in samples:
        if not np.isfinite(value):
            continue
        over -= 1
        if over >= 0:
            continue
        if s[COUNT] >= LEARN and abs(value - median) > GATE * max(scale, floor):
            s[REJECTED] += 1
            if s[REJECTED] > RELEARN:
                s[COUNT] = s[NEXT] = s[REJECTED] = 0
            continue
        s[REJECTED] = 0
        values[s[NEXT]] = value
        s[NEXT] = (s[NEXT] + 1) % HISTORY
        s[COUNT] = min(s[COUNT] + 1, HISTORY)
        if s[COUNT] <= LEARN:
            median, scale = _summarise(values, s[COUNT], work)
    if s[COUNT] >= LEARN:
        summary[row, 0], summary[row, 1] = _summarise(values, s[COUNT], work)
    return s[COUNT], summary[row, 0], summary[row, 1]
