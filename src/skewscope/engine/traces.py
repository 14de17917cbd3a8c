"""Series of one feature over all its scopes, in bounded memory: full ones lose resolution, not length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from skewscope.core.tables import Array
from skewscope.features.graph import grow


class Traces:
    """Points (time, value) per scope. A series that is full halves its resolution.

    So a day fits as well as a second. A point stands for the last `stride` values: their sum where they
    are counts, else the last one.
    """

    def __init__(self, counts: bool) -> None:
        self._counts = counts
        self._rows: dict[str, int] = {}
        self._keys: Sequence[str] = ()
        self._at = np.zeros(0, dtype=np.int64)
        self._length = np.zeros(0, dtype=np.int64)
        self._stride = np.zeros(0, dtype=np.int64)
        self._held = np.zeros(0, dtype=np.int64)
        self._sum = np.zeros(0)
        self._coarse = False
        self._log: list[tuple[Array, Array, Array]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, ts: int, keys: Sequence[str], column: Array, most: int, limit: int) -> None:
        """Take the values float64 (keys,) of one window; those not finite are passed over.

        most: series that there may be; new ones beyond are not followed. limit: points of a series.
        """
        if keys != self._keys:
            self._keys = list(keys)
            self._at = np.array([self._rows.get(key, -1) for key in keys], dtype=np.int64)
        known = np.flatnonzero(np.isfinite(column))
        rows = self._at[known]
        if rows.size and rows.min() < 0:
            self._learn(known[rows < 0], most)
            rows = self._at[known]
            known, rows = known[rows >= 0], rows[rows >= 0]
        values = column[known]
        if self._coarse:
            rows, values = self._thin(rows, values)
        if not rows.size:
            return
        self._log.append((np.array([ts]), rows, values))
        self._length[rows] += 1
        if self._length[rows].max() >= limit:
            self._halve(limit)

    def _learn(self, places: Array, most: int) -> None:
        for place in places[: max(0, most - len(self._rows))].tolist():
            self._at[place] = self._rows[self._keys[place]] = len(self._rows)
        size = len(self._rows)
        self._length, self._held = grow(self._length, size, 0), grow(self._held, size, 0)
        self._stride, self._sum = grow(self._stride, size, 1), grow(self._sum, size, 0.0)

    def _thin(self, rows: Array, values: Array) -> tuple[Array, Array]:
        """Return the rows that complete a point, and its value."""
        self._held[rows] += 1
        self._sum[rows] = self._sum[rows] + values if self._counts else values
        rows = rows[self._held[rows] >= self._stride[rows]]
        values = self._sum[rows]
        self._held[rows], self._sum[rows] = 0, 0.0
        return rows, values

    def _flat(self) -> tuple[Array, Array, Array]:
        """Return all points sorted by row, then time: (ts, rows, values)."""
        if not self._log:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
        ts = np.concatenate([np.broadcast_to(t, r.shape) for t, r, _ in self._log])
        rows = np.concatenate([r for _, r, _ in self._log])
        order = np.argsort(rows, kind="stable")
        return ts[order], rows[order], np.concatenate([v for _, _, v in self._log])[order]

    def _halve(self, limit: int) -> None:
        ts, rows, values = self._flat()
        full = self._length >= limit
        start = np.searchsorted(rows, rows)  # of each point's row
        place = np.arange(len(rows)) - start
        second = full[rows] & (place % 2 == 1)
        if self._counts:
            values[1:][second[1:]] += values[:-1][second[1:]]
        kept = ~full[rows] | second
        self._log = [(ts[kept], rows[kept], values[kept])]
        self._length = np.bincount(rows[kept], minlength=len(self._length))
        self._stride[full] *= 2
        self._coarse = True

    def series(self) -> Iterator[tuple[str, list[int], list[float]]]:
        """Yield key, times and values of each series, in order of first sight."""
        ts, rows, values = self._flat()
        cuts = np.searchsorted(rows, np.arange(len(self._rows) + 1)).tolist()
        for key, row in self._rows.items():
            part = slice(cuts[row], cuts[row + 1])
            yield key, ts[part].tolist(), values[part].tolist()
