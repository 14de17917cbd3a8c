"""Micro-batches in a chain of stages: which messages in became which messages out, and the time between.

A stage takes micro-batches in the order in which they come. *Own time* of a stage for one: its first byte
out, less the last byte of the same micro-batch in or the end of the one before out, whichever is later,
both at its own tap. So neither a stage that waits for input nor one whose output waits in a queue is
charged. What a stage sends without input known (before the capture began, or lost by it) has no own time.

Not all that reaches the first stage leaves it again: requests end, and others begin. Where its own time is
far beyond its usual one, but just the usual one since something that came later (an answer, a request), it
had waited for that.

A burst ends at a silence that is long for this member and this direction, once it has about as many
messages as usual: a silence with fewer before it is a message under way again.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.jit import inner, njit
from skewscope.core.tables import Array
from skewscope.features import round_kernel as k
from skewscope.features.bursts import BINS

SENT = 253
"""Stands where a tagged collective has its kind."""

QUEUE = 64
"""Micro-batches that may wait at a stage; of more the oldest is forgotten."""

MAX_SHORT = 3
"""Silences in a burst with too few messages before them: then the usual count is no longer right."""

ENOUGH = 0.9
"""Share of the usual count that a burst needs before a silence ends it."""

FAR = 1.5
"""Times its usual own time from which on the first stage may have waited for something that came later."""

NEAR = 0.15
"""Share of its usual own time within which it is thought to have begun at what came later."""

SURE = 3
"""Micro-batches in a row that something later explains: then what waits at the head has left the chain."""

KEPT = 32
"""Own times remembered of a stage, and its micro-batches before input and output are matched anew."""

TRIMMED = 4
"""Of these the furthest from their median are left out of their scatter: prefill, pauses."""

STEADIER = 0.7
"""Scatter, as a share of that of the match in use, from which on another match is the right one. In the wrong
one the times of other stages come in, and their scatter with them: at least 1.4 times that of one alone."""

SHORTER = 0.8
"""Share of the time between outputs below which own times leave doubt whether a stage is always busy."""

# Columns of an event: time (of a message in its last byte's), row of the member, what, payload bytes,
# frame | tap << 48, times of the first and of the last byte, time of the clear to send that let it go
# (0 = it had not been waited for).
V_TS, V_MEMBER, V_WHAT, V_BYTES, V_FRAME, V_BEGIN, V_END, V_CLEAR, V_COLUMNS = range(9)
INPUT, OUTPUT, GOES_ON, REQUEST, LOST = range(5)
"""What: a message in; one out; the data of one that was announced before; a request; something unseen."""

# Columns of a direction of a member.
LAST, COUNT, USUAL, SHORT, LIMIT, D_COLUMNS = range(6)

# Columns of a member: number of its latest micro-batch out and in (-1 = none), row of the stage before it
# (-1 = it is the first), first place and length of its queue, time of the last request, micro-batches in a
# row that something later explains, own times since the last match, how often input and output were
# matched anew.
NUMBER, NUMBER_IN, BEFORE, HEAD, SIZE, ASKED, LATER, OWNS, MATCHED, M_COLUMNS = range(10)

# Rows of the own times of a member: since its last output, as matched, since the next input (-1 = not
# there yet), and as told.
BUSY, SAME, NEXT, TOLD, OWN_ROWS = range(5)

# Columns of a waiting micro-batch.
Q_END, Q_BYTES, Q_NUMBER, Q_COLUMNS = range(4)


@inner
def begins(row: Array, histogram: Array, ts: int) -> bool:
    """Tell whether a message at ts (ns) begins a burst; row int64 (D_COLUMNS,), histogram float64 (BINS,)."""
    silence = ts - row[LAST] if row[LAST] > 0 else 0
    if silence > 0:
        size, left = 0, silence
        while left > 1:
            left >>= 1
            size += 1
        half = 2 * size + (1 if size > 0 and silence & (1 << (size - 1)) else 0)
        histogram[min(half, BINS - 1)] += silence / 1e9
    if row[COUNT] == 0:
        return True
    if row[LIMIT] == 0 or silence <= row[LIMIT]:
        return False
    if row[COUNT] < ENOUGH * row[USUAL] and row[SHORT] < MAX_SHORT:
        row[SHORT] += 1
        return False
    # It follows small counts: prefill holds many times the messages of decode.
    if row[USUAL] == 0:
        row[USUAL] = row[COUNT]
    elif row[COUNT] < row[USUAL]:
        row[USUAL] = (3 * row[USUAL] + row[COUNT]) // 4
    else:
        row[USUAL] += min(row[COUNT] - row[USUAL], max(1, row[USUAL] // 64))
    return True


@inner
def take_in(event: Array, ways: Array, state: Array, queue: Array, member: int, fresh: bool) -> None:
    """Let a message join the queue of a member, as a micro-batch of its own or part of the latest one."""
    s, row = state[member], ways[member, INPUT]
    if fresh:
        row[COUNT] = row[SHORT] = 0
        before = s[BEFORE]
        number = state[before, NUMBER] if before >= 0 else s[NUMBER_IN] + 1
        if number >= 0:
            s[NUMBER_IN] = max(number, s[NUMBER_IN] + 1)
        if s[SIZE] == QUEUE:
            s[HEAD] = (s[HEAD] + 1) % QUEUE
            s[SIZE] -= 1
        at = (s[HEAD] + s[SIZE]) % QUEUE
        queue[member, at, Q_END] = queue[member, at, Q_BYTES] = 0
        queue[member, at, Q_NUMBER] = s[NUMBER_IN] if number >= 0 else -1
        s[SIZE] += 1
    row[COUNT] += 1
    row[LAST] = max(row[LAST], event[V_END])
    if s[SIZE] > 0:
        at = (s[HEAD] + s[SIZE] - 1) % QUEUE
        queue[member, at, Q_END] = max(queue[member, at, Q_END], event[V_END])
        queue[member, at, Q_BYTES] += event[V_BYTES]


@inner
def explained(ts: int, since: int, s: Array, queue: Array, usual: float) -> int:
    """Return when the first stage began what it sends at ts: `since`, or something that explains ts better.

    s int64 (M_COLUMNS,); queue int64 (QUEUE, Q_COLUMNS): what still waits. Takes what has left the chain off
    the queue.
    """
    if usual <= 0.0 or ts - since <= FAR * usual:
        return since
    began = since
    for i in range(s[SIZE]):
        end = queue[(s[HEAD] + i) % QUEUE, Q_END]
        if end > since and abs(ts - end - usual) <= NEAR * usual:
            began = end
    s[LATER] = s[LATER] + 1 if began > since else 0
    if s[LATER] >= SURE:
        s[LATER] = 0
        s[HEAD] = (s[HEAD] + 1) % QUEUE
        s[SIZE] -= 1
    return s[ASKED] if began == since < s[ASKED] < ts else began


@inner
def scatter(values: Array) -> float:
    """Return the mean distance of values int64 (KEPT,) from their median, without the TRIMMED furthest."""
    off = np.sort(np.abs(values - np.median(values)))
    return float(off[: KEPT - TRIMMED].mean())


@inner
def match(s: Array, owns: Array) -> None:
    """Match input and output anew where another match leaves less scatter; s int64 (M_COLUMNS,).

    A capture begins with micro-batches under way at a stage, and may lose some later. owns int64 (OWN_ROWS,
    KEPT), full.
    """
    same = scatter(owns[SAME])
    if np.median(owns[SAME]) < SHORTER * np.median(owns[BUSY]) and scatter(owns[BUSY]) < STEADIER * same:
        s[HEAD] = (s[HEAD] - 1) % QUEUE  # always busy: what it sends now came before all that waits
        s[SIZE] = min(s[SIZE] + 1, QUEUE)
    elif owns[NEXT].min() >= 0 and s[SIZE] > 0 and scatter(owns[NEXT]) < STEADIER * same:
        s[HEAD] = (s[HEAD] + 1) % QUEUE
        s[SIZE] -= 1
    else:
        return
    s[MATCHED] += 1
    s[OWNS] = 0


@inner
def own_since(ts: int, last: int, clear: int, s: Array, queue: Array, owns: Array) -> int:
    """Return when the stage began the micro-batch that it sends at ts, and take that off the queue.

    last: end of its last output; clear: time of the clear to send that it had waited for. s int64
    (M_COLUMNS,); queue int64 (QUEUE, Q_COLUMNS), not empty; owns int64 (OWN_ROWS, KEPT).
    """
    end = queue[s[HEAD], Q_END]
    s[HEAD] = (s[HEAD] + 1) % QUEUE
    s[SIZE] -= 1
    floor = max(last, clear)
    since = max(end, floor)
    told = np.int64(min(s[OWNS], KEPT))
    usual = float(np.median(owns[TOLD])) if told == KEPT else 0.0
    at = s[OWNS] % KEPT
    owns[BUSY, at], owns[SAME, at] = ts - floor, ts - since
    owns[NEXT, at] = ts - max(queue[s[HEAD], Q_END], floor) if s[SIZE] > 0 else -1
    s[OWNS] += 1
    began = explained(ts, since, s, queue, usual) if s[BEFORE] < 0 else since
    owns[TOLD, at] = ts - began
    if s[OWNS] >= KEPT and s[OWNS] % KEPT == 0:
        match(s, owns)
    return began


@inner
def enter(
    event: Array, ways: Array, state: Array, queue: Array, owns: Array, member: int, round_: Array
) -> None:
    """Begin the round of the oldest waiting micro-batch in round_ int64 (R_COLUMNS,), KEY < 0 = unknown."""
    s, ts, before = state[member], event[V_TS], round_[k.KEY]
    row = ways[member, OUTPUT]
    row[COUNT] = row[SHORT] = 0
    round_[:] = 0
    number = -1
    if s[SIZE] > 0:
        waited = queue[member, s[HEAD]]
        number = waited[Q_NUMBER]
        since = own_since(ts, row[LAST], event[V_CLEAR], s, queue[member], owns[member])
        round_[k.OWN] = max(ts - since, 1)
        round_[k.OWN_FROM] = since
        round_[k.FIRST_IN] = round_[k.LAST_IN] = waited[Q_END]
        round_[k.DATA_IN] = waited[Q_BYTES]
    elif s[BEFORE] >= 0 or s[OWNS] < KEPT:
        s[MATCHED] += 1  # until now the input of this one may have passed for that of another
    if s[BEFORE] < 0:
        number = s[NUMBER] + 1
    elif number >= 0:
        number = max(number, s[NUMBER] + 1)
    if number >= 0:
        s[NUMBER] = number
    round_[k.KEY] = (SENT << 32) | number if number >= 0 else -1
    round_[k.PREVIOUS] = before if before > 0 else -1
    round_[k.FIRST_OUT] = ts
    round_[k.FRAME] = event[V_FRAME]
    round_[k.ASKED] = s[ASKED]
    round_[k.MATCHED] = s[MATCHED]


@njit
def pass_on(
    events: Array, ways: Array, histogram: Array, state: Array, queue: Array, owns: Array, rounds: Array,
    done: Array,
) -> int:  # fmt: skip
    """Absorb time-ordered events int64 (n, V_COLUMNS).

    ways int64 (members, 2, D_COLUMNS), histogram float64 (members, 2, BINS): seconds of silence by length;
    state int64 (members, M_COLUMNS); queue int64 (members, QUEUE, Q_COLUMNS); owns int64 (members, OWN_ROWS,
    KEPT); rounds int64 (members, R_COLUMNS): the micro-batch that each is sending. Closed ones go to `done`
    int64 (m, 1 + R_COLUMNS), first column the member; returns how many.
    """
    count = 0
    for i in range(len(events)):
        event = events[i]
        member, what, ts = event[V_MEMBER], event[V_WHAT], event[V_TS]
        s, round_ = state[member], rounds[member]
        if what == REQUEST:
            s[ASKED] = ts
            continue
        if what == LOST:
            s[SIZE] = 0  # what went out unseen would wait for ever, and all behind it be told too early
            continue
        if what == INPUT:
            fresh = begins(ways[member, INPUT], histogram[member, INPUT], event[V_BEGIN])
            take_in(event, ways, state, queue, member, fresh)
            continue
        row = ways[member, OUTPUT]
        if what == OUTPUT:
            if begins(row, histogram[member, OUTPUT], ts):
                if round_[k.KEY] > 0 and count < len(done):
                    done[count, 0] = member
                    done[count, 1:] = round_
                    count += 1
                enter(event, ways, state, queue, owns, member, round_)
            elif ts - max(row[LAST], event[V_CLEAR]) > round_[k.INSIDE]:
                round_[k.INSIDE] = ts - max(row[LAST], event[V_CLEAR])
                round_[k.INSIDE_END] = ts
                round_[k.INSIDE_FRAME] = event[V_FRAME]
            row[COUNT] += 1
            round_[k.MESSAGES] += 1
        row[LAST] = max(row[LAST], event[V_END])
        round_[k.LAST_OUT] = round_[k.LAST_EVENT] = row[LAST]
        round_[k.DATA_OUT] += event[V_BYTES]
        round_[k.LARGEST] = max(round_[k.LARGEST], event[V_BYTES])
    return count
