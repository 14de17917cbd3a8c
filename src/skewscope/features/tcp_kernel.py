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

from skewscope.core.jit import inner, njit
from skewscope.core.serial import serial16, serial32
from skewscope.core.tables import Array
from skewscope.features.tcp_fate import DECIDE_NS as DECIDE_NS
from skewscope.features.tcp_fate import E_CLOSED, E_REORDERED, NO_ID, Scalar, arrived, event
from skewscope.features.tcp_fate import E_LOST as E_LOST
from skewscope.features.tcp_fate import E_RESENT as E_RESENT

RING = 64
"""Copies remembered per lane: more than a round's segments in flight on a quiet path; on a bulk flow
the oldest are forgotten, which loses samples of time, never the fate of a copy that was sent again."""

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


@inner
def find_copy(ring: Array, lane: Array, seq: int, end: int, ipid: int, sent: bool) -> int:
    """Return the ring index of this copy as the other tap saw it alone, or -1.

    sent: a copy that the receiver's tap saw and the sender's did not yet is looked for.
    """
    slot = lane[L_SLOT]
    if sent:
        if lane[L_AHEAD] == 0:
            return -1
    elif ipid != 0:  # an id tells copies apart, so the first that fits is the only one
        row = ring[slot, lane[L_EXPECTED]]
        if row[END] == end and row[SEQ] == seq and row[IPID] == ipid and row[TS_R] == 0 and row[TS_S] != 0:
            return int(lane[L_EXPECTED])
    for k in range(RING):
        row = ring[slot, k]
        mine, other = (row[TS_S], row[TS_R]) if sent else (row[TS_R], row[TS_S])
        if row[END] == end and row[SEQ] == seq and row[IPID] == ipid and mine == 0 and other != 0:
            return k
    return -1


@inner
def push_copy(ring: Array, lane: Array, seq: int, end: int, ipid: int, frame: int, length: int) -> int:
    """Remember a copy in the lane's ring, over the oldest one; returns its index."""
    k = int(lane[L_HEAD]) % RING
    lane[L_HEAD] += 1
    row = ring[lane[L_SLOT], k]
    if row[TS_R] != 0 and row[TS_S] == 0:
        lane[L_AHEAD] -= 1
    row[:] = 0
    row[SEQ] = seq
    row[END] = end
    row[IPID] = ipid
    row[FRAME] = frame
    row[LENGTH] = length
    return k


@inner
def mark_resent(ring: Array, slot: int, seq: int, end: int, newest: int) -> int:
    """Flag the earlier copy of these bytes as sent again; returns its index or -1."""
    found = -1
    for k in range(RING):
        row = ring[slot, k]
        if k == newest or row[TS_S] == 0 or row[STATE] & RESENT:
            continue
        if serial32(row[SEQ], seq) <= 0 and serial32(row[END], end) >= 0:
            row[STATE] |= RESENT
            found = k
    return found


@inner
def on_sent(
    ring: Array,
    lane: Array,
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
    acc[A_SEGMENTS] += 1
    acc[A_LARGEST] = max(acc[A_LARGEST], length)
    first = lane[L_NEXT] < 0
    gone_back = not first and serial32(end, lane[L_NEXT]) <= 0
    # A window or keep-alive probe repeats the byte before the next one and carries nothing new.
    if gone_back and length <= 1:
        return 0, -1
    k = -1
    if lane[L_SLOT] >= 0:
        if separate:
            k = find_copy(ring, lane, seq, end, ipid, True)
        if k < 0:
            k = push_copy(ring, lane, seq, end, ipid, frame, length)
        else:
            lane[L_AHEAD] -= 1
        ring[lane[L_SLOT], k, TS_S] = ts
        ring[lane[L_SLOT], k, FRAME] = frame | (tap << 48)
    if first or serial32(end, lane[L_NEXT]) > 0:
        lane[L_NEXT] = end
    if not gone_back:
        return 0, k
    acc[A_RESENT] += 1
    if k >= 0:
        ring[lane[L_SLOT], k, STATE] |= IS_COPY
        return 1, mark_resent(ring, lane[L_SLOT], seq, end, k)
    return 1, -1


@inner
def on_received(
    ring: Array,
    lane: Array,
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
    if separate and lane[L_SLOT] >= 0:
        k = find_copy(ring, lane, seq, end, ipid, False)
        if k >= 0:
            transit = ts - ring[lane[L_SLOT], k, TS_S]
            resent = (ring[lane[L_SLOT], k, STATE] & IS_COPY) != 0
        else:
            k = push_copy(ring, lane, seq, end, ipid, frame, length)
            lane[L_AHEAD] += 1
        ring[lane[L_SLOT], k, TS_R] = ts
        lane[L_EXPECTED] = (k + 1) % RING
    if lane[L_RNEXT] < 0:
        lane[L_RNEXT] = end
        return transit, 0
    if serial32(seq, lane[L_RNEXT]) > 0:
        acc[A_HOLES] += 1
        lane[L_HOLE_LO], lane[L_HOLE_HI] = lane[L_RNEXT], seq
        lane[L_HOLE_TS], lane[L_HOLE_ID] = ts, ipid
        lane[L_RNEXT] = end
        return transit, 0
    if serial32(end, lane[L_RNEXT]) > 0:
        lane[L_RNEXT] = end
        return transit, 0
    if lane[L_HOLE_TS] == 0 or serial32(seq, lane[L_HOLE_LO]) < 0 or serial32(end, lane[L_HOLE_HI]) > 0:
        return transit, 0
    if serial32(seq, lane[L_HOLE_LO]) <= 0 and serial32(end, lane[L_HOLE_HI]) >= 0:
        late = lane[L_HOLE_TS]
        lane[L_HOLE_TS] = 0
    else:
        late = lane[L_HOLE_TS]
        if serial32(seq, lane[L_HOLE_LO]) <= 0:
            lane[L_HOLE_LO] = end
    if transit >= 0:
        return transit, 2 if resent else 1
    if ipid != 0 or lane[L_HOLE_ID] != 0:
        return transit, 1 if serial16(ipid, lane[L_HOLE_ID]) < 0 else 2
    return transit, 2 if ts - late > 3_000_000 else 1


@inner
def on_ack(ring: Array, lane: Array, ack: int, ts: int, payload: int, una: int) -> tuple[int, int, int, int]:
    """An acknowledgement at the sender's tap that moved `una` forward.

    Returns (round trip ns or -1, 1 where the receiver may have delayed it, frame and payload bytes of
    the data). A receiver may hold back the acknowledgement of less than two full segments (RFC 9293,
    section 3.8.6.3), so a bare one for a single copy is flagged.
    """
    best, count, frame, length = -1, 0, 0, 0
    slot = lane[L_SLOT]
    if slot < 0:
        return -1, 0, 0, 0
    tail = max(lane[L_TAIL], lane[L_HEAD] - RING)
    while tail < lane[L_HEAD] and serial32(ring[slot, tail % RING, END], una) <= 0:
        tail += 1
    lane[L_TAIL] = tail
    for n in range(tail, lane[L_HEAD]):
        row = ring[slot, n % RING]
        if row[TS_S] == 0 or serial32(row[END], ack) > 0 or serial32(row[END], una) <= 0:
            continue
        count += 1
        if row[STATE] == 0 and row[TS_S] > best:
            best, frame, length = row[TS_S], row[FRAME], row[LENGTH]
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
        lane = lanes[at]
        if tap == sender_tap:
            _count_sent(lane, acc[at], cols[i])
        span = payload + (flags & 1) + ((flags >> 1) & 1)
        end = (seq + span) & 0xFFFFFFFF
        if flags & 2:
            lane[L_NEXT] = lane[L_RNEXT] = -1
            lane[L_HOLE_TS] = 0
        if span > 0 and flags & 4 == 0:
            if tap == sender_tap:
                again, k = on_sent(
                    ring, lane, acc[at], ts, seq, end, cols[i, 12], frame, tap, payload, separate
                )
                if again and lane[L_ZERO_SINCE] == 0:
                    _note_resent(ring, lane, lane_id, k, ts, payload, where, events, pending, counts)
            if tap == receiver_tap:
                took, late = on_received(
                    ring, lane, acc[at], ts, seq, end, cols[i, 12], frame, payload, separate
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
            _acknowledge(
                cols[i], lanes[back], flow * 2 + 1 - way, ring, acc[back], rtt, pending, events, counts
            )


@inner
def _count_sent(lane: Array, acc: Array, row: Array) -> None:
    acc[A_PACKETS] += 1
    acc[A_BYTES] += row[5]
    acc[A_SYN] += (row[8] >> 1) & 1
    acc[A_FIN] += row[8] & 1
    acc[A_RST] += (row[8] >> 2) & 1
    acc[A_CE] += 1 if row[13] == 3 else 0


@inner
def _row5(out: Array, counts: Array, which: Scalar, a: int, b: int, c: int, d: int, e: int) -> None:
    n = counts[which]
    if n < len(out):
        out[n, 0], out[n, 1], out[n, 2], out[n, 3], out[n, 4] = a, b, c, d, e
        counts[which] += 1


@inner
def _note_resent(
    ring: Array,
    lane: Array,
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
    first = ring[lane[L_SLOT], k]
    row[0], row[1], row[2], row[3], row[4] = lane_id, first[SEQ], first[TS_S], ts, first[LENGTH]
    row[5], row[6], row[7], row[8] = first[FRAME], first[END], first[IPID], 1 if first[TS_R] != 0 else 0
    counts[3] += 1


@inner
def _acknowledge(
    row: Array,
    lane: Array,
    lane_id: int,
    ring: Array,
    acc: Array,
    rtt: Array,
    pending: Array,
    events: Array,
    counts: Array,
) -> None:
    ts, payload, ack, flags, window = row[0], row[5], row[7], row[8], row[9]
    if flags & 4:
        return
    if flags & 2 == 0:
        # A reader that falls behind shrinks its window long before it closes it: date it from there.
        if 10 * window >= 9 * lane[L_PEAK]:
            lane[L_PEAK] = max(window, lane[L_PEAK])
            lane[L_SHRINK] = 0
        elif lane[L_SHRINK] == 0:
            lane[L_SHRINK] = ts
    if window == 0 and flags & 2 == 0:
        acc[A_ZERO] += 1
        if lane[L_ZERO_SINCE] == 0:
            lane[L_ZERO_SINCE] = ts
            since = lane[L_SHRINK] if lane[L_SHRINK] else ts
            event(events, counts, E_CLOSED, lane_id, since, window, row[2] | (row[1] << 48))
    elif lane[L_ZERO_SINCE] > 0:
        lane[L_ZERO_SINCE] = 0
    if row[11] and serial32(row[11], ack) <= 0:
        arrived(pending, counts[3], lane_id, row[10], row[11], NO_ID)
    una = lane[L_UNA]
    if una < 0:
        lane[L_UNA] = ack
        return
    if serial32(ack, una) > 0:
        took, delayed, frame, length = on_ack(ring, lane, ack, ts, payload, una)
        if took >= 0:
            _row5(rtt, counts, C_RTT, lane_id, took, ts, frame, (length << 1) | delayed)
        lane[L_UNA] = ack
    elif ack == una and payload == 0 and flags & 7 == 0 and lane[L_NEXT] >= 0:
        acc[A_DUPACKS] += 1 if serial32(lane[L_NEXT], ack) > 0 else 0
