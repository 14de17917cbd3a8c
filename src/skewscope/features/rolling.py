"""Recent values per row, and a usual value learned online that a fault cannot quickly teach."""

from __future__ import annotations

from collections import Counter
from math import isnan

import numpy as np

from skewscope.core.jit import njit
from skewscope.core.tables import Array
from skewscope.features.graph import grow

RING = 64
"""Recent values kept per row."""

PUSH = 16
"""Most values taken per row and window, evenly spaced: the ring spans at least four windows."""

LEARN = 16
"""Values after which a reference stands: four streams give as many in four steps (0.4 s at 10 a second)."""

UP_S, DOWN_S = 120.0, 6.0
"""Time constants of drift. Faster down than up: slow is what a fault looks like, and a capture that
begins in a busy moment must find the usual value soon after."""

PULL = 0.25
"""A window pulls the reference by at most this share per time constant, however far off it is."""


def grouped_quantile(rows: Array, values: Array, q: float, size: int) -> Array:
    """Return the q-quantile (nearest rank) of `values` per row id: float64 (size,), NaN where none.

    `rows` int64 (n,) below `size`, `values` float64 (n,).
    """
    out = np.full(size, np.nan)
    if not len(rows):
        return out
    order = np.lexsort((values, rows))
    rows, values = rows[order], values[order]
    starts = np.flatnonzero(np.concatenate(([True], rows[1:] != rows[:-1])))
    counts = np.diff(np.append(starts, len(rows)))
    out[rows[starts]] = values[starts + np.floor(q * (counts - 1) + 0.5).astype(np.int64)]
    return out


class Ring:
    """The latest values of each row: float64 (rows, RING)."""

    def __init__(self) -> None:
        self._values = np.full((0, RING), np.nan)
        self._pushed = np.zeros(0, dtype=np.int64)

    def reserve(self, rows: int) -> None:
        """Make room for `rows` rows."""
        self._values = grow(self._values, rows, np.nan)
        self._pushed = grow(self._pushed, rows, 0)

    def push(self, rows: Array, values: Array) -> Array:
        """Append values (n,) to their rows (n,), in the order given; return the rows touched."""
        if not len(rows):
            return np.zeros(0, dtype=np.int64)
        order = np.argsort(rows, kind="stable")
        rows, values = rows[order], values[order]
        touched, starts, counts = np.unique(rows, return_index=True, return_counts=True)
        place = np.arange(len(rows)) - np.repeat(starts, counts)
        stride = np.repeat(-(-counts // PUSH), counts)
        kept = place % stride == 0
        rows, place, values = rows[kept], (place // stride)[kept], values[kept]
        self._values[rows, (self._pushed[rows] + place) % RING] = values
        self._pushed[touched] += -(-counts // (-(-counts // PUSH)))
        return touched

    def count(self, rows: Array) -> Array:
        """Return how many values each of `rows` was given: int64 (n,)."""
        return self._pushed[rows]

    def mode(self, row: int, latest: int = RING) -> tuple[float, int]:
        """Return the value that one row's latest values show most often, and how often; (NaN, 0): none."""
        back = (self._pushed[row] - 1 - np.arange(latest)) % RING
        counts = Counter(value for value in self._values[row, back].tolist() if not isnan(value))
        if not counts:
            return float("nan"), 0
        most = max(counts.values())
        return min(value for value, n in counts.items() if n == most), most

    def quantile(self, rows: Array, q: float, latest: int = RING) -> Array:
        """Return the q-quantile of the `latest` values of `rows`: float64 (n,), NaN where there are none."""
        out = np.empty(len(rows))
        _quantile(self._values, self._pushed, np.asarray(rows), q, latest, out)
        return out


@njit
def _quantile(values: Array, pushed: Array, rows: Array, q: float, latest: int, out: Array) -> None:
    """Fill out (n,) with the q-quantile of the `latest` values of each of `rows` (n,), NaN = none."""
    kept = np.empty(latest)
    for i in range(len(rows)):
        row = rows[i]
        have = min(pushed[row], latest)
        for back in range(have):
            kept[back] = values[row, (pushed[row] - 1 - back) % values.shape[1]]
        kept[:have].sort()  # NaN sorts last
        out[i] = kept[int(np.floor(q * (have - 1) + 0.5))] if have > 0 else np.nan


class Usual:
    """The usual value of each row: the median of its first values, then a bounded slow drift."""

    def __init__(self) -> None:
        self.value = np.zeros(0)
        self._ring = Ring()

    def reserve(self, rows: int) -> None:
        """Make room for `rows` rows."""
        self.value = grow(self.value, rows, np.nan)
        self._ring.reserve(rows)

    def learn(self, rows: Array, values: Array, window_s: float, q: float = 0.5) -> None:
        """Take the values (n,) of this window, none negative, for their rows (n,)."""
        touched = self._ring.push(rows, values)
        if not len(touched):
            return
        young = self._ring.count(touched) <= LEARN
        now = self._ring.quantile(touched, q)
        old = self.value[touched]
        gap = np.clip(now / np.where(old > 0, old, 1.0) - 1.0, -PULL, PULL)
        drift = old * (1.0 + gap * window_s / np.where(gap > 0, UP_S * PULL, DOWN_S * PULL))
        self.value[touched] = np.where(young | np.isnan(old), now, drift)

    def recent(self, rows: Array, q: float, latest: int = RING) -> Array:
        """Return the q-quantile of the latest values themselves, the fault's included: float64 (n,)."""
        return self._ring.quantile(rows, q, latest)

    def count(self, rows: Array) -> Array:
        """Return how many values each of `rows` was given: int64 (n,)."""
        return self._ring.count(rows)

    def known(self, rows: Array) -> Array:
        """Return which of `rows` have a reference that stands: bool (n,)."""
        return self._ring.count(rows) >= LEARN
