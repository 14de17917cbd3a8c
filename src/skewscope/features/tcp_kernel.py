"""TCP seen from one or two taps: round trips, transit, loss told from needless copies, windows.

One pass over a slice's packets in time order, state per flow and direction ("lane" = flow * 2 +
way of the data). A *copy* is one transmission of a segment; the IP id tells copies of the same
bytes apart (RFC 6864; Linux counts it per socket). Rules:

- a copy is lost only if the same bytes were sent again, and, where both ends have a tap, the copy
  never showed at the receiver's tap although that tap was alive. So a tail-loss probe (RFC 8985)
  to a stalled reader, whose first copy did arrive, is needless, not loss;
- with one tap only, a selective acknowledgement below the cumulative one (RFC 2883) clears a copy;
- bytes that fill a hole late were reordered if their copy left before the hole opened.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.jit import inlined, njit
from skewscope.core.serial import serial16, serial32
from skewscope.core.tables import Array
from skewscope.features.tcp_fate import DECIDE_NS as DECIDE_NS
from skewscope.features.tcp_fate import E_CLOSED, E_REORDERED, NO_ID, Scalar, arrived, event
from skewscope.features.tcp_fate import E_LOST as E_LOST
from skewscope.features.tcp_fate import E_RESENT as E_RESENT

RING = 64
"""Copies remembered per lane, a power of two: more than a round's segments in flight on a quiet path; on a
bulk flow the oldest are forgotten, which loses samples of time, never the fate of a copy sent again."""

# Columns of the ring: first and last sequence number, times at both taps, IP id, frame and tap of
# the sender's view, state bits.
SEQ, END, TS_S, TS_R, IPID, FRAME, STATE, LENGTH = range(8)
RESENT, IS_COPY = 1, 2

# Columns of the per-lane accumulators of one slice.
A_PACKETS, A_BYTES, A_SEGMENTS, A_RESENT, A_REORDERED, A_DUPACKS, A_ZERO, A_SYN, A_FIN, A_RST = range(10)
A_LARGEST, A_HOLES, A_CE, A_COLUMNS = 10, 11, 12, 13

# Which of `counts` a row is counted in; int64 for the reason given in tcp_fate.
C_RTT, C_TRANSIT = np.int64(0), np.int64(1)

# Columns of the lane state.
L_NEXT, L_UNA, L_SLOT, L_HEAD, L_RNEXT, L_HOLE_LO, L_HOLE_HI, L_HOLE_TS, L_HOLE_ID = range(9)
L_ZERO_SINCE, L_PEAK, L_SHRINK, L_TAIL, L_AHEAD, L_EXPECTED, L_COLUMNS = range(9, 16)
# L_TAIL: number (as L_HEAD counts) of the oldest copy that is not known to be acknowledged. L_AHEAD: copies
# in the ring that only the receiver's tap has shown. L_EXPECTED: ring index of the copy that is due there
# next.


@inlined
def _is_copy(ring: Array, slot: int, k: int, seq: int, end: int, ipid: int) -> bool:
    return bool(ring[slot, k, END] == end and ring[slot, k, SEQ] == seq and ring[slot, k, IPID] == ipid)


@inlined
def find_copy(ring: Array, lanes: Array, at: int, seq: int, end: int, ipid: int, sent: bool) -> int:
    """Return the ring index of this copy as the other tap saw it alone, or -1.

    sent: a copy that the receiver's tap saw and the sender's did not yet is looked for.
    """
    slot = lanes[at, L_SLOT]
    if sent:
        if lanes[at, L_AHEAD] == 0:
            return -1
    elif ipid != 0:  # an id tells copies apart, so the first that fits is the only one
        k = int(lanes[at, L_EXPECTED])
        if _is_copy(ring, slot, k, seq, end, ipid) and ring[slot, k, TS_R] == 0 and ring[slot, k, TS_S] != 0:
            return k
    mine, other = (TS_S, TS_R) if sent else (TS_R, TS_S)
    for k in range(RING):
        if _is_copy(ring, slot, k, seq, end, ipid) and ring[slot, k, mine] == 0 and ring[slot, k, other] != 0:
            return k
    return -1


@inlined
def push_copy(
    ring: Array, lanes: Array, at: int, seq: int, end: int, ipid: int, frame: int, length: int
) -> int:
    """Remember a copy in the lane's ring, over the oldest one; returns its index."""
    k = int(lanes[at, L_HEAD]) & (RING - 1)
    lanes[at, L_HEAD] += 1
    slot = lanes[at, L_SLOT]
    if ring[slot, k, TS_R] != 0 and ring[slot, k, TS_S] == 0:
        lanes[at, L_AHEAD] -= 1
    ring[slot, k, SEQ], ring[slot, k, END], ring[slot, k, TS_S], ring[slot, k, TS_R] = seq, end, 0, 0
    ring[slot, k, IPID], ring[slot, k, FRAME], ring[slot, k, STATE] = ipid, frame, 0
    ring[slot, k, LENGTH] = length
    return k


@inlined
def mark_resent(ring: Array, slot: int, seq: int, end: int, newest: int) -> int:
    """Flag the earlier copy of these bytes as sent again; returns its index or -1."""
    found = -1
    for k in range(RING):
        if k == newest or ring[slot, k, TS_S] == 0 or ring[slot, k, STATE] & RESENT:
            continue
        if serial32(ring[slot, k, SEQ], seq) <= 0 and serial32(ring[slot, k, END], end) >= 0:
            ring[slot, k, STATE] |= RESENT
            found = k
    return found


@inlined
def on_sent(
    ring: Array,
    lanes: Array,
    at: int,
    acc: Array,
    ts: int,
    seq: int,
    end: int,
    ipid: int,
    frame: int,
    tap: int,
    length: int,
    separate: bool,
) -> tuple[int, int]:
    """A data segment at the sender's tap. Returns (1 where bytes were sent again, ring index)."""
    acc[at, A_SEGMENTS] += 1
    acc[at, A_LARGEST] = max(acc[at, A_LARGEST], length)
    first = lanes[at, L_NEXT] < 0
    gone_back = not first and serial32(end, lanes[at, L_NEXT]) <= 0
    # A window or keep-alive probe repeats the byte before the next one and carries nothing new.
    if gone_back and length <= 1:
        return 0, -1
    k = -1
    if lanes[at, L_SLOT] >= 0:
        if separate:
            k = find_copy(ring, lanes, at, seq, end, ipid, True)
        if k < 0:
            k = push_copy(ring, lanes, at, seq, end, ipid, frame, length)
        else:
            lanes[at, L_AHEAD] -= 1
        ring[lanes[at, L_SLOT], k, TS_S] = ts
        ring[lanes[at, L_SLOT], k, FRAME] = frame | (tap << 48)
    if first or serial32(end, lanes[at, L_NEXT]) > 0:
        lanes[at, L_NEXT] = end
    if not gone_back:
        return 0, k
    acc[at, A_RESENT] += 1
    if k >= 0:
        ring[lanes[at, L_SLOT], k, STATE] |= IS_COPY
        return 1, mark_resent(ring, lanes[at, L_SLOT], seq, end, k)
    return 1, -1


@inlined
def on_received(
    ring: Array,
    lanes: Array,
    at: int,
    acc: Array,
    ts: int,
    seq: int,
    end: int,
    ipid: int,
    frame: int,
    length: int,
    separate: bool,
) -> tuple[int, int]:
    """A data segment at the receiver's tap.

    Returns (transit in ns or -1 where its sender's view is unknown, lateness code): 0 in order,
    1 fills a hole as a reordered copy, 2 fills a hole as a copy sent again.
    """
    transit = -1
    resent = False
    if separate and lanes[at, L_SLOT] >= 0:
        k = find_copy(ring, lanes, at, seq, end, ipid, False)
        if k >= 0:
            transit = ts - ring[lanes[at, L_SLOT], k, TS_S]
            resent = (ring[lanes[at, L_SLOT], k, STATE] & IS_COPY) != 0
        else:
            k = push_copy(ring, lanes, at, seq, end, ipid, frame, length)
            lanes[at, L_AHEAD] += 1
        ring[lanes[at, L_SLOT], k, TS_R] = ts
        lanes[at, L_EXPECTED] = (k + 1) & (RING - 1)
    if lanes[at, L_RNEXT] < 0:
        lanes[at, L_RNEXT] = end
        return transit, 0
    if serial32(seq, lanes[at, L_RNEXT]) > 0:
        acc[at, A_HOLES] += 1
        lanes[at, L_HOLE_LO], lanes[at, L_HOLE_HI] = lanes[at, L_RNEXT], seq
        lanes[at, L_HOLE_TS], lanes[at, L_HOLE_ID] = ts, ipid
        lanes[at, L_RNEXT] = end
        return transit, 0
    if serial32(end, lanes[at, L_RNEXT]) > 0:
        lanes[at, L_RNEXT] = end
        return transit, 0
    if (
        lanes[at, L_HOLE_TS] == 0
        or serial32(seq, lanes[at, L_HOLE_LO]) < 0
        or serial32(end, lanes[at, L_HOLE_HI]) > 0
    ):
        return transit, 0
    if serial32(seq, lanes[at, L_HOLE_LO]) <= 0 and serial32(end, lanes[at, L_HOLE_HI]) >= 0:
        late = lanes[at, L_HOLE_TS]
        lanes[at, L_HOLE_TS] = 0
    else:
        late = lanes[at, L_HOLE_TS]
        if serial32(seq, lanes[at, L_HOLE_LO]) <= 0:
            lanes[at, L_HOLE_LO] = end
    if transit >= 0:
        return transit, 2 if resent else 1
    if ipid != 0 or lanes[at, L_HOLE_ID] != 0:
        return transit, 1 if serial16(ipid, lanes[at, L_HOLE_ID]) < 0 else 2
    return transit, 2 if ts - late > 3_000_000 else 1


@inlined
def on_ack(
    ring: Array, lanes: Array, at: int, ack: int, ts: int, payload: int, una: int
) -> tuple[int, int, int, int]:
    """An acknowledgement at the sender's tap that moved `una` forward.

    Returns (round trip ns or -1, 1 where the receiver may have delayed it, frame and payload bytes of
    the data). A receiver may hold back the acknowledgement of less than two full segments (RFC 9293,
    section 3.8.6.3), so a bare one for a single copy is flagged.
    """
    best, count, frame, length = -1, 0, 0, 0
    slot = lanes[at, L_SLOT]
    if slot < 0:
        return -1, 0, 0, 0
    tail = max(lanes[at, L_TAIL], lanes[at, L_HEAD] - RING)
    while tail < lanes[at, L_HEAD] and serial32(ring[slot, tail & (RING - 1), END], una) <= 0:
        tail += 1
    lanes[at, L_TAIL] = tail
    for n in range(tail, lanes[at, L_HEAD]):
        k = n & (RING - 1)
        if (
            ring[slot, k, TS_S] == 0
            or serial32(ring[slot, k, END], ack) > 0
            or serial32(ring[slot, k, END], una) <= 0
        ):
            continue
        count += 1
        if ring[slot, k, STATE] == 0 and ring[slot, k, TS_S] > best:
            best, frame, length = ring[slot, k, TS_S], ring[slot, k, FRAME], ring[slot, k, LENGTH]
    if best < 0:
        return -1, 0, 0, 0
    return ts - best, 1 if payload == 0 and count < 2 else 0, frame, length


@njit
def scan(
    cols: Array,
    vantage: Array,
    lanes: Array,
    ring: Array,
    acc: Array,
    rtt: Array,
    transit: Array,
    events: Array,
    pending: Array,
    counts: Array,
) -> None:
    """Absorb the TCP packets of a slice.

    cols int64 (n, 15): ts, tap, frame, flow, way, payload, seq, ack, flags, window, sack lo, sack hi,
    ip id, ecn, place: lanes 2 * place + way hold the flow's state. vantage int32 (flows, 2). lanes int64
    (lanes, L_COLUMNS), ring int64 (slots, RING, 8), acc int64 (lanes, A_COLUMNS). Outputs, in which a lane
    is 2 * flow + way: rtt int64 (n, 5): lane, ns, ts, frame, payload bytes << 1 | delayed; transit int64
    (n, 5): lane, ns, ts, frame, length; events int64 (m, 6): kind, lane, ts, length, frame, 0; pending as
    in tcp_fate. counts int64 (4,): rows used in rtt, transit, events, pending.
    """
    for i in range(len(cols)):
        ts, tap, frame, flow, way = cols[i, 0], cols[i, 1], cols[i, 2], cols[i, 3], cols[i, 4]
        payload, seq, flags = cols[i, 5], cols[i, 6], cols[i, 8]
        sender_tap, receiver_tap = vantage[flow, way], vantage[flow, 1 - way]
        separate, where = sender_tap != receiver_tap, frame | (tap << 48)
        lane_id, at, back = flow * 2 + way, cols[i, 14] * 2 + way, cols[i, 14] * 2 + 1 - way
        if tap == sender_tap:
            _count_sent(acc, at, cols, i)
        span = payload + (flags & 1) + ((flags >> 1) & 1)
        end = (seq + span) & 0xFFFFFFFF
        if flags & 2:
            lanes[at, L_NEXT] = lanes[at, L_RNEXT] = -1
            lanes[at, L_HOLE_TS] = 0
        if span > 0 and flags & 4 == 0:
            if tap == sender_tap:
                again, k = on_sent(
                    ring, lanes, at, acc, ts, seq, end, cols[i, 12], frame, tap, payload, separate
                )
                if again and lanes[at, L_ZERO_SINCE] == 0:
                    _note_resent(ring, lanes, at, lane_id, k, ts, payload, where, events, pending, counts)
            if tap == receiver_tap:
                took, late = on_received(
                    ring, lanes, at, acc, ts, seq, end, cols[i, 12], frame, payload, separate
                )
                if separate:
                    arrived(pending, counts[3], lane_id, seq, end, cols[i, 12])
                if took >= 0:
                    _row5(transit, counts, C_TRANSIT, lane_id, took, ts, where, payload)
                if late == 1:
                    acc[at, A_REORDERED] += 1
                    event(events, counts, E_REORDERED, lane_id, ts, payload, where)
                elif late == 2 and not separate:
                    event(events, counts, E_LOST, lane_id, ts, payload, where)
        # This packet acknowledges the other direction's data; that sender's tap must have seen it.
        if flags & 16 and tap == vantage[flow, 1 - way]:
            _acknowledge(cols, i, lanes, back, flow * 2 + 1 - way, ring, acc, rtt, pending, events, counts)


@inlined
def _count_sent(acc: Array, at: int, cols: Array, i: int) -> None:
    flags = cols[i, 8]
    acc[at, A_PACKETS] += 1
    acc[at, A_BYTES] += cols[i, 5]
    acc[at, A_SYN] += (flags >> 1) & 1
    acc[at, A_FIN] += flags & 1
    acc[at, A_RST] += (flags >> 2) & 1
    acc[at, A_CE] += 1 if cols[i, 13] == 3 else 0


@inlined
def _row5(out: Array, counts: Array, which: Scalar, a: int, b: int, c: int, d: int, e: int) -> None:
    n = counts[which]
    if n < len(out):
        out[n, 0], out[n, 1], out[n, 2], out[n, 3], out[n, 4] = a, b, c, d, e
        counts[which] += 1


@inlined
def _note_resent(
    ring: Array,
    lanes: Array,
    at: int,
    lane_id: int,
    k: int,
    ts: int,
    length: int,
    frame: int,
    events: Array,
    pending: Array,
    counts: Array,
) -> None:
    event(events, counts, E_RESENT, lane_id, ts, length, frame)
    if k < 0 or counts[3] >= len(pending):
        return
    row = pending[counts[3]]
    first = ring[lanes[at, L_SLOT], k]
    row[0], row[1], row[2], row[3], row[4] = lane_id, first[SEQ], first[TS_S], ts, first[LENGTH]
    row[5], row[6], row[7], row[8] = first[FRAME], first[END], first[IPID], 1 if first[TS_R] != 0 else 0
    counts[3] += 1


@inlined
def _acknowledge(
    cols: Array,
    i: int,
    lanes: Array,
    at: int,
    lane_id: int,
    ring: Array,
    acc: Array,
    rtt: Array,
    pending: Array,
    events: Array,
    counts: Array,
) -> None:
    ts, payload, ack, flags, window = cols[i, 0], cols[i, 5], cols[i, 7], cols[i, 8], cols[i, 9]
    if flags & 4:
        return
    if flags & 2 == 0:
        # A reader that falls behind shrinks its window long before it closes it: date it from there.
        if 10 * window >= 9 * lanes[at, L_PEAK]:
            lanes[at, L_PEAK] = max(window, lanes[at, L_PEAK])
            lanes[at, L_SHRINK] = 0
        elif lanes[at, L_SHRINK] == 0:
            lanes[at, L_SHRINK] = ts
    if window == 0 and flags & 2 == 0:
        acc[at, A_ZERO] += 1
        if lanes[at, L_ZERO_SINCE] == 0:
            lanes[at, L_ZERO_SINCE] = ts
            since = lanes[at, L_SHRINK] if lanes[at, L_SHRINK] else ts
            event(events, counts, E_CLOSED, lane_id, since, window, cols[i, 2] | (cols[i, 1] << 48))
    elif lanes[at, L_ZERO_SINCE] > 0:
        lanes[at, L_ZERO_SINCE] = 0
    if cols[i, 11] and serial32(cols[i, 11], ack) <= 0:
        arrived(pending, counts[3], lane_id, cols[i, 10], cols[i, 11], NO_ID)
    una = lanes[at, L_UNA]
    if una < 0:
        lanes[at, L_UNA] = ack
        return
    if serial32(ack, una) > 0:
        took, delayed, frame, length = on_ack(ring, lanes, at, ack, ts, payload, una)
        if took >= 0:
            _row5(rtt, counts, C_RTT, lane_id, took, ts, frame, (length << 1) | delayed)
        lanes[at, L_UNA] = ack
    elif ack == una and payload == 0 and flags & 7 == 0 and lanes[at, L_NEXT] >= 0:
        acc[at, A_DUPACKS] += 1 if serial32(lanes[at, L_NEXT], ack) > 0 else 0
