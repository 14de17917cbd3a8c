"""Rounds without framing: bursts of a group's packets between silences, for encrypted or unknown bytes.

A group computes, then exchanges, then computes: silence separates rounds. A silence inside a round
(a member stopped) must not split it, so a round is only closed at a silence once every member has
sent and about as many packets as usual went by. Keys made here count the rounds of a group.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.jit import njit
from skewscope.core.tables import Array

OPAQUE = 255
"""Stands where a framed collective has its kind."""

MIN_PACKETS = 40
"""Data packets each way before an unframed flow is taken for a group's: about one round of a ring."""

MIN_BALANCE = 0.2
"""Least ratio of data packets of the two directions: bulk transfers go one way."""

WAIT_NS = 500_000_000
"""Time for framing to be recognised before bursts are tried."""

BINS = 128
"""Half-octave bins of the silence histogram, from 1 ns."""

FULL_SHARE = 0.6
"""Share of the usual packets that a round needs before a silence may close it."""

# Columns of a group's state.
LAST, SEQUENCE, COUNT, USUAL, LIMIT, WHOLE, G_COLUMNS = range(7)


@njit
def number_rounds(
    ts: Array,
    group: Array,
    sender: Array,
    members: Array,
    state: Array,
    sent: Array,
    histogram: Array,
    keys: Array,
) -> None:
    """Write the round number of each packet to keys int64 (n,).

    ts int64 (n,) ascending; group, sender int64 (n,): row of the group, place of the sender in it;
    members int64 (groups,); state int64 (groups, G_COLUMNS); sent bool (groups, places); histogram
    float64 (groups, BINS): seconds of silence by length.
    """
    for i in range(len(ts)):
        g = group[i]
        row = state[g]
        silence = ts[i] - row[LAST] if row[LAST] > 0 else 0
        row[LAST] = max(row[LAST], ts[i])
        if silence > 0:
            size = 0
            left = silence
            while left > 1:
                left >>= 1
                size += 1
            half = 2 * size + (1 if silence & (1 << max(size - 1, 0)) and size > 0 else 0)
            histogram[g, min(half, BINS - 1)] += silence / 1e9
        if silence > row[LIMIT] > 0:
            everyone = True
            for m in range(members[g]):
                everyone = everyone and sent[g, m]
            if everyone and row[WHOLE] == 0:
                # Usual is what a round holds at its first silence with all members in it.
                row[WHOLE] = 1
                # It follows the small ones: prefill rounds hold many times the packets of decode.
                if row[USUAL] == 0:
                    row[USUAL] = row[COUNT]
                elif row[COUNT] < row[USUAL]:
                    row[USUAL] = (3 * row[USUAL] + row[COUNT]) // 4
                else:
                    row[USUAL] += max(1, row[USUAL] // 64)
            enough = row[COUNT] * 10 >= row[USUAL] * 6
            if (everyone and enough) or row[COUNT] > 3 * max(row[USUAL], 8):
                row[SEQUENCE] += 1
                row[COUNT] = 0
                row[WHOLE] = 0
                sent[g, :] = False
        row[COUNT] += 1
        sent[g, sender[i]] = True
        keys[i] = row[SEQUENCE]


def silence_limit(histogram: Array) -> int:
    """Return the silence (ns) that separates rounds, 0 while nothing is known.

    It is half of the length from which on silences make up half of the time.
    """
    total = histogram.sum()
    if total <= 0:
        return 0
    longest_first = np.cumsum(histogram[::-1])
    at = BINS - 1 - int(np.searchsorted(longest_first, 0.5 * total))
    return int(2.0 ** (at / 2.0) / 2.0)


class Bursts:
    """Numbers the rounds of unframed groups."""

    def __init__(self) -> None:
        self._row: dict[int, int] = {}
        self._place: dict[tuple[int, int], int] = {}
        self._state = np.zeros((0, G_COLUMNS), dtype=np.int64)
        self._sent = np.zeros((0, 64), dtype=np.bool_)
        self._histogram = np.zeros((0, BINS))

    def keys(self, ts: Array, group: Array, sender: Array, groups: dict[int, list[int]]) -> Array:
        """Return the round number of each packet, int64 (n,).

        ts int64 (n,) ascending; group, sender int64 (n,): group id and address id.
        """
        for g in np.unique(group):
            for m in groups[int(g)][:64]:
                self._place.setdefault((int(g), m), len([k for k in self._place if k[0] == g]))
            if int(g) not in self._row:
                self._row[int(g)] = len(self._row)
                self._state = np.concatenate([self._state, np.zeros((1, G_COLUMNS), dtype=np.int64)])
                self._sent = np.concatenate([self._sent, np.zeros((1, 64), dtype=np.bool_)])
                self._histogram = np.concatenate([self._histogram, np.zeros((1, BINS))])
        for g in self._row:
            self._state[self._row[g], LIMIT] = silence_limit(self._histogram[self._row[g]])
        rows = np.array([self._row[int(g)] for g in group], dtype=np.int64)
        places = np.array(
            [self._place.get((int(g), int(s)), 0) for g, s in zip(group, sender, strict=True)], dtype=np.int64
        )
        members = np.array([min(len(groups.get(g, ())), 64) for g in self._row], dtype=np.int64)
        out = np.zeros(len(ts), dtype=np.int64)
        number_rounds(ts, rows, places, members, self._state, self._sent, self._histogram, out)
        return out
