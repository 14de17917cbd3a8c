"""Steps of groups whose messages carry no tag: NCCL's, by counting messages between silences.

In a ring every connection carries the same number of messages per collective, and every step holds the
same collectives; between steps there is a silence (sampling, scheduling). So per connection and per
length of silence the messages between silences are counted; lengths at which the count repeats are
levels of the traffic (collective, step, request). The shortest level of at least MIN_PERIOD_NS is the
round of the group: long enough that taps' clocks need to agree to milliseconds only.

Connections take the number of the group's present step when they begin one, so a capture that began
in mid-step, or a lost message, shifts one step and no further. A silence with fewer messages than usual
before it is a stop inside a step and does not end it.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.jit import njit
from skewscope.core.tables import Array

LENGTHS = 22
SHORTEST_LOG2 = 13
"""Lengths of silence looked at: 2^13 ns (8 us), doubling, to 17 s."""

KEPT = 8
"""Counts kept per connection and length."""

LEAST = 4
"""Counts seen before a length can be a level."""

ALIKE = 0.1
"""Counts within this share of their median are alike (a lost message is far below it)."""

REGULAR = 0.6
"""Share of alike counts that makes a level: prefill steps hold more messages than decode steps."""

ENOUGH = 0.9
"""Share of the usual count that a step needs before a silence ends it."""

HOLED_ENOUGH = 0.5
"""The same where the capture has a hole in it."""

MIN_PERIOD_NS = 4_000_000
PATIENCE_NS = 500_000_000
"""Time after which a level of shorter steps is taken where no other is found."""

MAX_SHORT = 3
"""Silences in a row with too few messages before them: then the usual count is no longer right."""

MAX_LATE = 2
"""Messages lost at the end of a step that are awaited. More that are missing are another kind of step."""

MAX_CONNECTIONS = 1 << 14

# Columns of a connection's state.
LAST, FIRST, STEP, COUNT, SHORT, USUAL, LENGTH, BEGUN, HOLE, WAITED, C_COLUMNS = range(11)


@njit
def begins(row: Array, silence: int, present: int) -> bool:
    """Tell whether a message begins a step of its connection, and count the silences that did not end one.

    Where few are missing and the capture has no hole, they were lost on the way: the silence waited for their
    copies, which come first. Where the step is full and others have gone on, no silence is needed.
    """
    missing = row[USUAL] - row[COUNT]
    if silence > row[LENGTH]:
        holed = row[HOLE] >= row[BEGUN] - row[LENGTH]
        late = 0 < missing <= MAX_LATE and not holed and row[WAITED] == 0
        enough = row[COUNT] >= (HOLED_ENOUGH if holed else ENOUGH) * row[USUAL] and not late
        if row[BEGUN] == 0 or enough or row[SHORT] >= MAX_SHORT:
            row[WAITED] = 0
            return True
        row[WAITED] = 1  # not twice in a row: a count that is off would stay so
        row[SHORT] += 1
        return False
    return bool(row[BEGUN] > 0 and missing <= 0 and present > row[STEP])


@njit
def number(
    ts: Array, end: Array, connection: Array, group: Array, state: Array, since: Array, began: Array,
    counts: Array, spans: Array, seen: Array, present: Array, steps: Array,
) -> None:  # fmt: skip
    """Write the step of each message to steps int64 (n,), -1 while it has none.

    ts, end int64 (n,): first and last byte (ns), in order of ts per connection; connection, group int64
    (n,); state int64 (connections, C_COLUMNS); since, began, seen int64 (connections, LENGTHS): messages
    since the last silence of each length, the time of its end, and such silences so far; counts, spans
    int64 (connections, LENGTHS, KEPT): messages between them, and the time (ns) from one to the next;
    present int64 (groups,): the group's present step.
    """
    for i in range(len(ts)):
        c = connection[i]
        row = state[c]
        silence = ts[i] - row[LAST] if row[LAST] > 0 else 0
        if row[FIRST] == 0:
            row[FIRST] = ts[i]
        for k in range(LENGTHS):
            if silence <= (1 << (SHORTEST_LOG2 + k)):
                break
            if seen[c, k] > 0:  # what came before the first silence may have begun before the capture
                counts[c, k, (seen[c, k] - 1) % KEPT] = since[c, k]
                spans[c, k, (seen[c, k] - 1) % KEPT] = ts[i] - began[c, k]
            seen[c, k] += 1
            since[c, k] = 0
            began[c, k] = ts[i]
        since[c] += 1
        row[LAST] = max(row[LAST], max(ts[i], end[i]))
        g = group[i]
        if row[LENGTH] > 0 and begins(row, silence, present[g]):
            if row[STEP] >= present[g]:
                present[g] += 1
            row[STEP] = present[g]
            row[BEGUN] = ts[i]
            row[COUNT] = 0
            row[SHORT] = 0
        row[COUNT] += 1
        steps[i] = row[STEP] if row[BEGUN] > 0 else -1


class Steps:
    """Numbers the steps of untagged groups."""

    def __init__(self) -> None:
        self._row: dict[tuple[int, int, int, int], int] = {}
        self._place: dict[int, int] = {}
        self._state = np.zeros((0, C_COLUMNS), dtype=np.int64)
        self._since = np.zeros((0, LENGTHS), dtype=np.int64)
        self._seen = np.zeros((0, LENGTHS), dtype=np.int64)
        self._began = np.zeros((0, LENGTHS), dtype=np.int64)
        self._counts = np.zeros((0, LENGTHS, KEPT), dtype=np.int64)
        self._spans = np.zeros((0, LENGTHS, KEPT), dtype=np.int64)
        self._present = np.zeros(0, dtype=np.int64)

    def rows(self, connections: Array) -> Array:
        """Return the row of each connection int64 (n, 4): tap, sender, receiver, kind; -1 beyond a limit."""
        unique, back = np.unique(connections, axis=0, return_inverse=True)
        found = np.array([self._row_of(tuple(int(v) for v in key)) for key in unique], dtype=np.int64)
        return found[back.reshape(-1)]

    def _row_of(self, key: tuple[int, ...]) -> int:
        tap, src, dst, kind = key
        row = self._row.get((tap, src, dst, kind))
        if row is None:
            if len(self._row) >= MAX_CONNECTIONS:
                return -1
            row = self._row[tap, src, dst, kind] = len(self._row)
            if row >= len(self._state):
                more = max(64, row)
                self._state = _longer(self._state, more)
                self._since, self._seen = _longer(self._since, more), _longer(self._seen, more)
                self._began = _longer(self._began, more)
                self._counts, self._spans = _longer(self._counts, more), _longer(self._spans, more)
        return row

    def note_holes(self, ts: Array, rows: Array) -> None:
        """Remember when the capture lost messages of these connections: int64 (n,) ns, and of `rows`."""
        known = rows >= 0
        np.maximum.at(self._state[:, HOLE], rows[known], ts[known])

    def number(self, ts: Array, end: Array, rows: Array, group: Array) -> Array:
        """Return the step of each message int64 (n,), -1 where it is not known.

        ts, end int64 (n,): first and last byte (ns), in order per connection; rows int64 (n,) of `rows`,
        none negative; group int64 (n,): group id.
        """
        for g in np.unique(group).tolist():
            if g not in self._place:
                self._place[g] = len(self._place)
                self._present = np.append(self._present, 0)
            self._choose(np.unique(rows[group == g]))
        steps = np.full(len(ts), -1, dtype=np.int64)
        places = np.array([self._place[g] for g in group.tolist()], dtype=np.int64)
        number(
            ts, end, rows, places, self._state, self._since, self._began, self._counts, self._spans,
            self._seen, self._present, steps,
        )  # fmt: skip
        return steps

    def _choose(self, rows: Array) -> None:
        """Choose the length of silence that ends a step of a group, from what its connections show."""
        kept = np.clip(self._seen[rows] - 1, 0, KEPT)  # (connections, LENGTHS)
        counts, spans = self._counts[rows].astype(np.float64), self._spans[rows].astype(np.float64)
        unused = np.arange(KEPT)[None, None, :] >= kept[:, :, None]
        counts[unused] = spans[unused] = np.nan
        known = kept >= LEAST
        usual, period = np.zeros(kept.shape), np.zeros(kept.shape)
        usual[known] = np.nanmedian(counts[known], axis=1)
        period[known] = np.nanquantile(spans[known], 0.25, axis=1)
        alike = np.abs(counts - usual[:, :, None]) <= ALIKE * usual[:, :, None]
        regular = known & (alike.sum(axis=2) / np.maximum(kept, 1) >= REGULAR)
        present = int(np.median(self._state[rows, LENGTH])).bit_length() - 1 - SHORTEST_LOG2
        watched = int(np.max(self._state[rows, LAST] - self._state[rows, FIRST]))
        length = _length(regular, period, usual, present, watched >= PATIENCE_NS)
        if length >= 0:
            self._state[rows, LENGTH] = 1 << (SHORTEST_LOG2 + length)
            self._state[rows, USUAL] = usual[:, length].astype(np.int64)


def _length(regular: Array, period: Array, usual: Array, present: int, patient: bool) -> int:
    """Return the length (index) in the middle of the shortest level of MIN_PERIOD_NS, -1 where none is.

    Arrays of shape (connections, LENGTHS). At least half of the connections must show a level. The present
    length (negative: none) stays while it is one. `patient`: else take the longest of the shorter ones.
    """
    enough = regular.sum(axis=0) * 2 >= len(regular)
    if not enough.any():
        return -1
    at = np.flatnonzero(enough)
    middle = np.array([np.median(usual[regular[:, k], k]) for k in at])
    long_enough = np.array([np.median(period[regular[:, k], k]) >= MIN_PERIOD_NS for k in at])
    if present in at[long_enough].tolist():
        return present
    if not long_enough.any() and not patient:
        return -1
    first = int(np.flatnonzero(long_enough)[0]) if long_enough.any() else len(at) - 1
    level = at[np.abs(middle - middle[first]) <= ALIKE * middle[first]]
    return int(level[len(level) // 2])


def _longer(array: Array, more: int) -> Array:
    return np.concatenate([array, np.zeros((more, *array.shape[1:]), dtype=array.dtype)])
