"""How a member of a round compares with the others of the same round: equal work, equal noise."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from skewscope.core.jit import inner, njit
from skewscope.core.tables import Array
from skewscope.features.rounds import Rounds


@inner
def median_of_others(values: Array, lo: int, hi: int, j: int, rest: Array) -> float:
    """Return the median of the known values[lo:hi] but for that of j, NaN of none; `rest` is for its use."""
    count = 0
    for i in range(lo, hi):
        if i != j and np.isfinite(values[i]):
            k = count
            while k > 0 and rest[k - 1] > values[i]:
                rest[k] = rest[k - 1]
                k -= 1
            rest[k] = values[i]
            count += 1
    if count == 0:
        return float(np.nan)
    return float(0.5 * (rest[(count - 1) // 2] + rest[count // 2]))


@njit
def beyond_peers(
    start: Array, entry: Array, own: Array, busy: Array, excess: Array, peers_own: Array, wait: Array,
    alone: Array,
) -> None:  # fmt: skip
    """Write, per row of each round, the excess over the median of the others, their own time, the wait (s).

    start int64 (rounds,): first row of each; entry int64 (n,) in ns, the rest of shape (n,). Rows that
    are known and have no peer that is are marked in `alone`.
    """
    for number in range(len(start)):
        lo = start[number]
        hi = start[number + 1] if number + 1 < len(start) else len(busy)
        last = entry[lo:hi].max()
        rest = np.empty(hi - lo)
        for j in range(lo, hi):
            wait[j] = (last - entry[j]) / 1e9
            peers_own[j] = median_of_others(own, lo, hi, j, rest)
            usual = median_of_others(busy, lo, hi, j, rest)
            if np.isfinite(usual):
                excess[j] = busy[j] - usual
            elif np.isfinite(busy[j]):
                alone[j] = True


def by_clears(r: Rounds, excess: Array) -> None:
    """Correct the excess (s) in place where clears to send tell a late sender from a late receiver.

    Who waited for a clear to send is charged with no more than the time since. Who let its sender wait
    is charged with that, less the median of the other members in the same round.
    """
    told = np.isfinite(excess) & (r.cleared >= 0)
    if not told.any():
        return
    excess[told] = np.minimum(excess[told], r.cleared[told] / 1e9)
    unready = r.unready / 1e9
    for lo, hi in pairwise(np.append(r.start, len(r.group))):
        for j in np.flatnonzero(told[lo:hi]):
            rest = np.delete(unready[lo:hi], j)
            if len(rest):
                excess[lo + j] = max(excess[lo + j], unready[lo + j] - float(np.median(rest)))


def taken_shares(r: Rounds) -> Array:
    """Return the bytes that each row took in over the mean of its round, float64 (n,).

    1 in rounds in which some member took none: a broadcast says nothing of who gets more work.
    """
    if not len(r):
        return np.zeros(0)
    count = np.diff(np.append(r.start, len(r.taken)))
    each = np.repeat(np.add.reduceat(r.taken, r.start) / count, count)
    all_took = np.repeat(np.minimum.reduceat(r.taken, r.start) > 0, count)
    return np.where(all_took, r.taken / np.maximum(each, 1e-9), 1.0)
