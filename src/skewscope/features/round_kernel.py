"""Rounds of a collective group from framed messages: entry, own time, time inside, per member.

*Own time* of a member in round k: its first byte of round k out, less the last byte of round k-1 in
(or of anything else from its group since, such as the scheduler's work list), both at its own tap:
no clock synchronisation is needed. Bytes of round k that faster peers sent early count for round k,
never for k-1. *Inside*: the longest time in the round from the last event at the member (a message
in or out) to its next message out; waiting for a peer ends with a message in, so only the member's
own stops are long here.

Where receivers clear their senders (NCCL) a round is a whole step, and the time that a member held it is
the sum of all such silences (`HELD`, without own time). `CLEARED` is the same sum with each silence
counted from the clear to send that ended a wait for it: what the member alone can be charged with.
`UNREADY` sums how long the member, as a receiver, took from its last message in to a clear to send
that its sender had to wait for.
"""

from __future__ import annotations

from skewscope.core.jit import njit
from skewscope.core.tables import Array

OPEN = 8
"""Rounds that a member may have open at once: its own, and those in which faster peers are ahead."""

# Columns of an open round.
KEY, FIRST_OUT, LAST_OUT, LAST_IN, FIRST_IN, DATA_OUT, DATA_IN, INSIDE, INSIDE_END = range(9)
OWN, OWN_FROM, FRAME, INSIDE_FRAME, LARGEST, LAST_EVENT, MESSAGES, PREVIOUS, ASKED = range(9, 18)
HELD, CLEARED, UNREADY, MATCHED, R_COLUMNS = range(18, 23)

# Columns of the member state.
M_CURRENT, M_OTHER_IN, M_LAST_OUT, M_LAST_IN, M_ASKED, M_COLUMNS = range(6)

# Columns of an event row: time, member, 1 = out 0 = in 2 = a clear to send out that its sender had been
# waiting for, key (-1 = other data of the group, -2 = a request), payload bytes, frame | tap << 48, time
# of the clear to send that let this message go (0 = it had not been waited for).
V_TS, V_MEMBER, V_OUT, V_KEY, V_BYTES, V_FRAME, V_CLEAR, V_COLUMNS = range(8)


@njit
def open_round(rounds: Array, member: int, key: int) -> int:
    """Return the index of the member's open round with this key, over the oldest where new."""
    oldest, at = -1, 0
    for k in range(OPEN):
        if rounds[member, k, KEY] == key:
            return k
        last = rounds[member, k, LAST_EVENT]
        if oldest < 0 or last < oldest:
            oldest, at = last, k
    rounds[member, at, :] = 0
    rounds[member, at, KEY] = key
    return at


@njit
def enter(
    rounds: Array,
    members: Array,
    member: int,
    k: int,
    ts: int,
    frame: int,
    clear: int,
    done: Array,
    count: int,
) -> int:
    """The member's first message of a round: close its previous round; returns the rows in `done`."""
    state = members[member]
    row = rounds[member, k]
    current = state[M_CURRENT]
    row[PREVIOUS] = -1
    row[ASKED] = state[M_ASKED]
    if current >= 0:
        before = rounds[member, current]
        since = max(max(before[LAST_IN], before[LAST_OUT]), 0)
        since = max(since, state[M_OTHER_IN])
        if since > 0:
            row[OWN] = ts - since
            row[OWN_FROM] = since
            row[CLEARED] += ts - max(since, clear)
        row[PREVIOUS] = before[KEY]
        if count < len(done):
            done[count, 0] = member
            done[count, 1 : 1 + R_COLUMNS] = before
            count += 1
        before[KEY] = -1
        before[LAST_EVENT] = 0
    state[M_CURRENT] = k
    row[FIRST_OUT] = ts
    row[FRAME] = frame
    return count


@njit
def absorb(events: Array, rounds: Array, members: Array, done: Array) -> int:
    """Absorb time-ordered event rows int64 (n, V_COLUMNS).

    rounds int64 (members, OPEN, R_COLUMNS), members int64 (members, M_COLUMNS). Closed rounds go to
    `done` int64 (m, 1 + R_COLUMNS), first column the member; returns how many.
    """
    count = 0
    for i in range(len(events)):
        ts, member, key = events[i, V_TS], events[i, V_MEMBER], events[i, V_KEY]
        state = members[member]
        if key < 0:
            if key == -1:
                state[M_OTHER_IN] = ts
            else:
                state[M_ASKED] = ts
            continue
        k = open_round(rounds, member, key)
        row = rounds[member, k]
        if events[i, V_OUT] == 2:
            since = max(state[M_LAST_IN], state[M_OTHER_IN])
            if since > 0:
                row[UNREADY] += ts - since
            row[LAST_EVENT] = max(row[LAST_EVENT], 1)
            continue
        row[MESSAGES] += 1
        clear = events[i, V_CLEAR]
        if events[i, V_OUT] == 1:
            if row[FIRST_OUT] == 0:
                count = enter(rounds, members, member, k, ts, events[i, V_FRAME], clear, done, count)
            else:
                silence = max(ts - row[LAST_EVENT], 0)
                row[HELD] += silence
                row[CLEARED] += max(ts - max(row[LAST_EVENT], clear), 0)
                if silence > row[INSIDE]:
                    row[INSIDE] = silence
                    row[INSIDE_END] = ts
                    row[INSIDE_FRAME] = events[i, V_FRAME]
            row[LAST_OUT] = ts
            state[M_LAST_OUT] = ts
            row[DATA_OUT] += events[i, V_BYTES]
        else:
            if row[FIRST_IN] == 0:
                row[FIRST_IN] = ts
            row[LAST_IN] = ts
            state[M_LAST_IN] = ts
            row[DATA_IN] += events[i, V_BYTES]
        row[LARGEST] = max(row[LARGEST], events[i, V_BYTES])
        # A message of a later round that a faster peer sent early must not pass for an event here.
        row[LAST_EVENT] = max(row[LAST_EVENT], ts)
    return count
