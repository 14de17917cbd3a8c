"""TCP reassembly: packets of many flows to in-order spans per direction (RFC 9293, 3.4 and 3.10).

One kernel walks the packets in capture order and appends spans: data (known bytes, then bytes that
the snap length cut off), holes, closes, opens. Rules:

- First copy wins: bytes delivered or held are never replaced by a retransmission.
- A gap is awaited until the other side acknowledges beyond it, until what waits behind it passes a
  limit (segments, bytes, total cost, age), or until the end. Then it is a hole; nothing is invented.
- A capture that starts in mid-connection starts at the first sequence number it sees.
- A SYN with another initial sequence number starts a new connection on the same flow id.
"""

from __future__ import annotations

from skewscope.wire.held import end_stream, hold, reset, settle
from skewscope.wire.jit import inner, njit
from skewscope.wire.layout import (
    CLOSED,
    DATA,
    FAR,
    LIVE,
    OPEN,
    RUNNING,
    SPANS,
    STRAYED,
    TENTATIVE,
    Batch,
    Row,
    Tcp,
    i64,
)
from skewscope.wire.seq import WRAP, delta, extend
from skewscope.wire.slots import slot_for, touch
from skewscope.wire.spans import deliver_part, fill, held_spare, mark, span_spare

FIN, SYN, RST, ACK = 1, 2, 4, 16

STRAYS = 3
"""Consecutive segments far behind that make a new connection whose SYN was not captured."""


@inner
def _start(t: Tcp, s: int, state: int, pos: int) -> None:
    st = t.streams[s]
    st["state"] = state
    st["next"] = pos


@inner
def _syn(t: Tcp, s: int, seq: int, flags: int, ts: int) -> None:
    """Start a direction at its SYN, or a new connection if it was running with another one."""
    st = t.streams[s]
    if st["state"] != CLOSED:
        if st["isn_known"] == 1 and delta(seq, st["isn"]) == 0:
            return  # a retransmitted SYN
        back = st["next"] - extend(seq, st["next"])
        if st["isn_known"] == 0 and 0 <= back < 1 << 16:
            st["isn_known"] = 1  # a SYN captured behind its own data
            st["isn"] = seq
            return
        end_stream(t, s, ts)
        reset(t, s)
        if flags & ACK == 0:
            end_stream(t, s ^ 1, ts)
            reset(t, s ^ 1)
        mark(t, i64(OPEN), s, i64(0), i64(0), ts)
    elif flags & ACK == 0 and t.streams[s ^ 1]["state"] == CLOSED:
        mark(t, i64(OPEN), s, i64(0), i64(0), ts)  # a new connection behind a reset one
    _start(t, s, i64(RUNNING), WRAP + seq + 1)
    st["isn_known"] = 1
    st["isn"] = seq


@inner
def _stray(t: Tcp, s: int, pos: int, end: int, ts: int) -> int:
    """Tell whether a segment far behind is to be dropped (1) or has started a new connection (0)."""
    st = t.streams[s]
    st["strays"] = st["strays"] + 1 if st["stray_next"] == pos else 1
    st["stray_next"] = end
    t.cells[STRAYED] += 1
    if st["strays"] < STRAYS:
        return 1
    end_stream(t, s, ts)
    reset(t, s)
    mark(t, i64(OPEN), s, i64(0), i64(0), ts)
    _start(t, s, i64(RUNNING), pos)
    return 0


@inner
def _segment(t: Tcp, b: Batch, i: int, s: int, pos: int) -> None:
    """Take the payload of packet i: deliver it, hold it, or drop what is already there."""
    st = t.streams[s]
    size = i64(b.captured[i])
    end = pos + i64(b.payload[i])
    if end <= st["next"] and (st["next"] - end < FAR or _stray(t, s, pos, end, b.ts[i]) == 1):
        return
    if st["state"] == TENTATIVE:
        if pos == st["next"] + 1:  # the position came from a keep-alive probe
            st["next"] = pos
        st["state"] = RUNNING
    at = i64(b.at[i])
    if st["first"] < 0 and pos <= st["next"]:
        deliver_part(t, s, pos, at, size, end - pos - size, b.ts[i], b.frame[i], i64(1))
    else:
        hold(t, s, pos, at, size, end - pos - size, b.ts[i], b.frame[i], 1)


@inner
def packet(t: Tcp, b: Batch, i: int) -> None:
    """Take one packet of a followed flow."""
    s = 2 * slot_for(t, b, i) + i64(b.way[i] & 1)
    st = t.streams[s]
    flags = i64(b.flags[i])
    seq = i64(b.seq[i])
    ts = b.ts[i]
    if flags & RST:
        for side in (s, s ^ 1):
            end_stream(t, side, ts)
            reset(t, side)
        return
    if flags & SYN:
        _syn(t, s, seq, flags, ts)
        seq += 1
    payload = i64(b.payload[i])
    if st["state"] == CLOSED:
        _start(t, s, RUNNING if payload > 0 else TENTATIVE, WRAP + seq)
    pos = extend(seq & 0xFFFFFFFF, st["next"])
    if flags & ACK:
        other = t.streams[s ^ 1]
        if other["state"] != CLOSED:
            acked = extend(i64(b.ack[i]), other["next"])
            if acked > other["acked"] and acked - other["next"] < FAR:
                other["acked"] = acked
                if other["first"] >= 0:
                    settle(t, s ^ 1, ts, i64(0))
    if payload > 0:
        _segment(t, b, i, s, pos)
    if flags & FIN and pos + payload >= st["next"]:
        st["fin"] = pos + payload
    if st["first"] >= 0 or st["fin"] > 0:
        settle(t, s, ts, i64(0))


@inner
def _in_order(st: Row, other: Row, flags: int, payload: int, seq: int, ack: int) -> bool:
    """Tell whether a packet is the usual case, and then note its acknowledgement.

    Usual: no SYN, FIN or RST, nothing held in either direction, and no payload or the next one.
    """
    if flags & (SYN | FIN | RST) or st["first"] >= 0 or other["first"] >= 0 or st["fin"] > 0:
        return False
    if st["state"] == CLOSED or (payload > 0 and (st["state"] != RUNNING or delta(seq, st["next"]) != 0)):
        return False
    if flags & ACK and other["state"] != CLOSED:
        acked = extend(ack, other["next"])
        if acked > other["acked"] and acked - other["next"] < FAR:
            other["acked"] = acked
    return True


@njit
def deliver(t: Tcp, b: Batch, start: int) -> int:
    """Take packets from `start` on; return the index of the first one not taken.

    Stops early when the worst packet might not fit into the spans or the held segments left: the
    caller frames the spans, makes room and calls again. The usual case is a shortcut with the same
    result as `packet`: calls that pass all the arrays cost more than all else here.
    """
    spare = span_spare(t)
    for i in range(start, len(b.ts)):
        flow = b.flow[i]
        if flow == 0 or b.proto[i] != 6 or b.fault[i] != 0:
            continue
        if len(t.spans) - t.cells[SPANS] < spare or len(t.held) - t.cells[LIVE] < held_spare(t):
            return i
        k = i64(t.slot_of[flow])
        if k < 0:
            packet(t, b, i)
            continue
        s = 2 * k + i64(b.way[i] & 1)
        st = t.streams[s]
        size = i64(b.payload[i])
        if not _in_order(st, t.streams[s ^ 1], i64(b.flags[i]), size, i64(b.seq[i]), i64(b.ack[i])):
            packet(t, b, i)
            continue
        touch(t.slots, t.cells, k, b.ts[i])
        if size > 0:
            known = i64(b.captured[i])
            n = t.cells[SPANS]
            t.cells[SPANS] = n + 1
            span = t.spans[n]
            fill(span, t.slots[k], i64(DATA), s, i64(b.at[i]), known, size - known, st["next"], b.ts[i])
            span["frame"] = b.frame[i]
            span["head"] = 1
            st["next"] += size
    return len(b.ts)


@njit
def flush(t: Tcp, start: int, ts: int) -> int:
    """End all flows from slot `start` on; return the first slot not ended, as `deliver` does."""
    for k in range(start, len(t.slots)):
        if t.slots[k]["used"] == 0:
            continue
        if len(t.spans) - t.cells[SPANS] < span_spare(t):
            return k
        for s in (2 * k, 2 * k + 1):
            end_stream(t, s, ts)
            reset(t, s)
    return len(t.slots)
