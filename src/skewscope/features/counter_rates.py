"""Reading counters rightly: what a reading of `counters` or `metrics` says that the one before did not.

A value alone is rarely a fact. Counters of 32 bits wrap, drivers reset them, narrow fields stop at their
largest value, drivers answer from a cache, percentages are shares of an interval already over, and a code
that stays may have come twice. Every family that uses readings takes them from here; docs/sources.md lists
the traps with their sources.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from skewscope.core.jit import njit
from skewscope.core.schemas import Kind
from skewscope.core.tables import Array, Table
from skewscope.features.graph import grow

MAX_SERIES = 1 << 18
"""Series that are followed; a host has some thousand, and hostile input no end."""

LIFESPAN_NS = 12_000_000
"""How long a driver may answer from its cache: mlx5 has 10 ms, and 12 on the H100 host of the samples
(hw_counters/lifespan). The same value within that time was not read anew."""

WRAP = 2.0**32
HALF = 2.0**31
"""A fall by more than this is a wrap, a smaller one a reset: between two readings no 32-bit counter of
events or packets gets half way round (2^31 packets are 3 minutes of a full 400 Gbit/s port at 4 KiB)."""

_KEY = ("source", "entity", "name", "labels", "kind")


class Said(IntEnum):
    """What a reading says."""

    ROSE = 1  # a counter: by `rise` (0 included) since `since_ns`
    VALUE = 2  # a gauge or a share: `value` is all there is; its difference means nothing
    CHANGED = 3  # a code or state that differs from the one before
    SAME = 4  # ... or not, which does not say that nothing happened
    FIRST = 5  # nothing to compare with
    RESET = 6  # began anew: what was counted in between is lost
    FULL = 7  # stands at its ceiling and counts no longer
    UNKNOWN = 8  # present, but the product says that it does not know


@dataclass(frozen=True)
class Rises:
    """One row per reading that says something; repeats from a cache and readings out of order are gone.

    Arrays of shape (n,), in the order of series and time. `row` is the reading's row in the table.
    """

    row: Array
    series: Array
    since_ns: Array
    rise: Array
    """By how much a counter rose, in its unit; NaN wherever that is not known."""
    said: Array

    def __len__(self) -> int:
        return len(self.row)


class CounterRates:
    """Follows every series of one table over time; state is bounded and in plain arrays."""

    def __init__(self, lifespan_ns: int = LIFESPAN_NS) -> None:
        self._lifespan_ns = lifespan_ns
        self._ids: dict[bytes, int] = {}
        self._ts = np.zeros(0, np.int64)
        self._value = np.zeros(0, np.float64)
        self._wide = np.zeros(0, np.bool_)

    def __len__(self) -> int:
        return len(self._ids)

    def update(self, table: Table) -> Rises:
        """Take the readings of one slice, in the order of their time; return what they say."""
        n = len(table)
        series = self._series(table)
        order = np.lexsort((table["ts_ns"], series))
        order = order[series[order] >= 0]
        size = len(self._ids)
        self._ts, self._value = grow(self._ts, size, 0), grow(self._value, size, np.nan)
        self._wide = grow(self._wide, size, 0)
        ceiling = table["ceiling"] if "ceiling" in table.columns else np.zeros(n)
        since, rise = np.zeros(n, np.int64), np.full(n, np.nan)
        said = np.zeros(n, np.uint8)
        _follow(
            order,
            series,
            table["ts_ns"],
            table["value"],
            table["kind"],
            ceiling,
            self._lifespan_ns,
            self._ts,
            self._value,
            self._wide,
            since,
            rise,
            said,
        )
        kept = order[said[order] > 0]
        return Rises(kept, series[kept], since[kept], rise[kept], said[kept])

    def _series(self, table: Table) -> Array:
        """Return the number of each row's series: int64 (n,), -1 where there are too many."""
        columns = [table[name].astype(np.int64) for name in _KEY if name in table.columns]
        if "bound" in table.columns:
            columns.append(np.ascontiguousarray(table["bound"]).view(np.int64))
        if not len(table):
            return np.zeros(0, np.int64)
        keys, at = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
        numbers = np.empty(len(keys), np.int64)
        for i, key in enumerate(keys):
            packed = key.tobytes()
            known = self._ids.get(packed, -1)
            if known < 0 and len(self._ids) < MAX_SERIES:
                known = self._ids[packed] = len(self._ids)
            numbers[i] = known
        return numbers[at.reshape(-1)]


@njit
def _follow(
    order: Array,
    series: Array,
    ts: Array,
    value: Array,
    kind: Array,
    ceiling: Array,
    lifespan_ns: int,
    last_ts: Array,
    last_value: Array,
    wide: Array,
    since: Array,
    rise: Array,
    said: Array,
) -> None:
    """Compare each reading with the one before of its series; `last_*` and `wide` outlive the slice."""
    for i in order:
        s, v, t, k = series[i], value[i], ts[i], kind[i]
        before, then = last_value[s], last_ts[s]
        new = then == 0
        if np.isnan(v):
            said[i] = Said.UNKNOWN
            continue
        if not new and (t <= then or (v == before and t - then < lifespan_ns)):
            continue  # out of order, twice, or from a cache
        if ceiling[i] > 0 and v > ceiling[i]:
            wide[s] = True  # an extended counter: it goes on
        narrow = ceiling[i] > 0 and not wide[s]
        since[i] = then
        if k == Kind.GAUGE or k == Kind.PERCENT or k == Kind.QUANTILE:
            said[i] = Said.VALUE
        elif k == Kind.LAST_CODE and not new:
            said[i] = Said.SAME if v == before else Said.CHANGED
        elif narrow and v == ceiling[i]:
            said[i] = Said.FULL
        elif new:
            said[i] = Said.FIRST
        elif v >= before:
            said[i], rise[i] = Said.ROSE, v - before
        elif k == Kind.COUNTER32 and not narrow and before < WRAP and before - v > HALF:
            said[i], rise[i] = Said.ROSE, v - before + WRAP
        else:
            said[i] = Said.RESET
        last_ts[s], last_value[s] = t, v


def per_second(rises: Rises, table: Table, series_count: int) -> tuple[Array, Array]:
    """Return the rate of each series in a slice and the seconds that it covers: float64 (series_count,).

    The rate is what was counted over the time in which it was: NaN where nothing is known of any of it.
    """
    known = rises.said == Said.ROSE
    at = rises.series[known]
    seconds = (table["ts_ns"][rises.row[known]] - rises.since_ns[known]) / 1e9
    covered = np.bincount(at, seconds, series_count)
    counted = np.bincount(at, rises.rise[known], series_count)
    rate = np.full(series_count, np.nan)
    np.divide(counted, covered, out=rate, where=covered > 0)
    return rate, covered


def codes(table: Table, rises: Rises) -> Array:
    """Return the rows of the table in which a code or state changed: int64 (m,)."""
    changed = (rises.said == Said.CHANGED) & (table["kind"][rises.row] == Kind.LAST_CODE)
    return np.asarray(rises.row[changed])
