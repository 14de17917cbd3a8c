"""The fate of copies that were sent again: lost, or needless because an earlier one had arrived.

Rows of `pending`, int64 (p, 9): lane, seq, first sent, sent again, length, frame, end, IP id, 1 once
the first copy is known to have arrived. The rules stand in tcp_kernel.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.jit import inlined, njit
from skewscope.core.serial import serial32
from skewscope.core.tables import Array

Scalar = int | np.int64

DECIDE_NS = 200_000_000
"""A copy's fate is decided this long after it was sent: the least retransmission timer of Linux
(TCP_RTO_MIN), so a late original has had its time to arrive."""

GIVE_UP_NS = 10_000_000_000
"""After this long without a sign of life from the receiver's tap nothing is claimed about a copy."""

# Kinds of the event rows. Numba compiles a kernel anew for each plain int that it is called with, so
# constants that are passed on are int64.
E_LOST, E_NEEDLESS, E_REORDERED, E_RESENT, E_CLOSED = (np.int64(n) for n in range(1, 6))
NO_ID = np.int64(-1)


@inlined
def arrived(pending: Array, count: int, lane_id: int, seq: int, end: int, ipid: Scalar) -> None:
    """A copy showed at the receiver's tap (ipid >= 0), or a duplicate SACK names its bytes (ipid < 0)."""
    for p in range(count):
        row = pending[p]
        if row[0] != lane_id or row[8]:
            continue
        if ipid >= 0:
            if row[6] == end and row[7] == ipid:
                row[8] = 1
        elif serial32(row[1], seq) <= 0 and serial32(row[6], end) >= 0:
            row[8] = 1


@inlined
def event(events: Array, counts: Array, kind: Scalar, lane_id: int, ts: int, length: int, frame: int) -> None:
    """Add an event row, unless there is no room left."""
    n = counts[2]
    if n < len(events):
        events[n, 0], events[n, 1], events[n, 2] = kind, lane_id, ts
        events[n, 3], events[n, 4] = length, frame
        counts[2] += 1


@inlined
def sent_twice(pending: Array, count: int, p: int) -> bool:
    """Return whether another copy of the bytes of row p was sent again as well."""
    for q in range(count):
        if q != p and pending[q, 0] == pending[p, 0] and pending[q, 6] == pending[p, 6]:
            return True
    return False


@njit
def decide(
    pending: Array, count: int, now: int, separate: Array, alive_ns: Array, events: Array, counts: Array
) -> int:
    """Settle the copies whose time has come; returns how many stay pending (moved to the front).

    separate bool (count,): the two ends are judged from two taps. alive_ns int64 (count,): last
    packet of anything at the receiver's tap.
    """
    kept = 0
    for p in range(count):
        first, again, known = pending[p, 2], pending[p, 3], pending[p, 8]
        # A receiver's tap that has shown nothing since proves nothing: wait for a sign of life.
        # Bytes that were sent again twice and more without an acknowledgement speak for themselves.
        blind = separate[p] and alive_ns[p] < first and not sent_twice(pending, count, p)
        if known == 0 and (now - again < DECIDE_NS or (blind and now - again < GIVE_UP_NS)):
            for c in range(pending.shape[1]):  # a slice assignment costs a second of compilation
                pending[kept, c] = pending[p, c]
            kept += 1
        elif known or not blind:
            kind = E_NEEDLESS if known else E_LOST
            event(events, counts, kind, pending[p, 0], first, pending[p, 4], pending[p, 5])
    return kept
