"""Segments that wait behind a gap, and the end of waiting: delivery, or a declared hole.

Held segments of a stream are a linked list in position order, free of overlap: what is held or
delivered first wins. Every limit is checked where the list has grown.
"""

from __future__ import annotations

from skewscope.core.tables import Array
from skewscope.wire.jit import inner, njit
from skewscope.wire.layout import (
    CLOSE,
    CLOSED,
    COST,
    FAR,
    FREE_HELD,
    HOLE,
    L_AGE,
    L_BYTES,
    L_SEGMENTS,
    L_TOTAL,
    LIVE,
    STRAYED,
    Tcp,
    i64,
)
from skewscope.wire.spans import deliver_part, mark, shift

HELD_COST = 96
"""Bytes of memory charged per held segment besides its payload."""


@inner
def _pop(t: Tcp, s: int) -> None:
    """Free the first held segment of a stream."""
    st = t.streams[s]
    k = st["first"]
    h = t.held[k]
    cost = h["size"] + HELD_COST
    st["first"] = h["next"]
    if st["first"] < 0:
        st["last"] = -1
    st["held"] -= 1
    st["held_bytes"] -= cost
    t.cells[COST] -= cost
    t.cells[LIVE] -= 1
    h["live"] = 0
    h["next"] = t.cells[FREE_HELD]
    t.cells[FREE_HELD] = k


@inner
def _insert(
    t: Tcp, s: int, after: int, pos: int, at: int, size: int, skip: int, ts: int, frame: int, head: int
) -> int:
    """Link one held segment behind `after` (-1 = first) and return its index."""
    k: int = t.cells[FREE_HELD]
    h = t.held[k]
    t.cells[FREE_HELD] = h["next"]
    h["pos"] = pos
    h["at"] = at
    h["size"] = size
    h["skip"] = skip
    h["ts"] = ts
    h["frame"] = frame
    h["head"] = head
    h["live"] = 1
    st = t.streams[s]
    if after < 0:
        h["next"] = st["first"]
        st["first"] = k
    else:
        h["next"] = t.held[after]["next"]
        t.held[after]["next"] = k
    if h["next"] < 0:
        st["last"] = k
    cost = size + HELD_COST
    st["held"] += 1
    st["held_bytes"] += cost
    t.cells[COST] += cost
    t.cells[LIVE] += 1
    return k


@inner
def hold(t: Tcp, s: int, pos: int, at: int, size: int, skip: int, ts: int, frame: int, head: int) -> None:
    """Keep the bytes of a segment that no held segment has: first copy wins."""
    st = t.streams[s]
    end = pos + size + skip
    after = -1
    walk = st["first"]
    last = st["last"]
    if last >= 0 and t.held[last]["pos"] + t.held[last]["size"] + t.held[last]["skip"] <= pos:
        after = last  # the usual case: in order behind one gap
        walk = -1
    at_pos = max(pos, st["next"])
    while at_pos < end:
        stop = end
        if walk >= 0:
            h = t.held[walk]
            h_end = h["pos"] + h["size"] + h["skip"]
            if h["pos"] <= at_pos:
                at_pos = max(at_pos, h_end)
                after = walk
                walk = h["next"]
                continue
            stop = min(end, h["pos"])
        known = max(0, min(stop, pos + size) - at_pos)
        after = _insert(
            t,
            s,
            after,
            at_pos,
            shift(at, min(at_pos - pos, size)),
            known,
            stop - at_pos - known,
            ts,
            frame,
            head if at_pos == pos else 0,
        )
        at_pos = stop


@inner
def _hole(t: Tcp, s: int, end: int, ts: int) -> None:
    """Declare the bytes up to `end` missing."""
    st = t.streams[s]
    mark(t, i64(HOLE), s, end - st["next"], st["next"], ts)
    st["next"] = end


@inner
def settle(t: Tcp, s: int, ts: int, flush: int) -> None:
    """Deliver what is in order; declare holes where waiting is over (all of them if `flush`)."""
    st = t.streams[s]
    while st["first"] >= 0:
        h = t.held[st["first"]]
        if h["pos"] <= st["next"]:
            deliver_part(t, s, h["pos"], h["at"], h["size"], h["skip"], h["ts"], h["frame"], i64(h["head"]))
            _pop(t, s)
            continue
        over = (
            st["acked"] >= h["pos"]
            or st["held"] > t.limits[L_SEGMENTS]
            or st["held_bytes"] > t.limits[L_BYTES]
            or t.cells[COST] > t.limits[L_TOTAL]
        )
        if not over and (flush == 1 or ts - h["ts"] > t.limits[L_AGE]):
            if h["pos"] - st["next"] > FAR:  # one absurd segment must not end a live stream
                _pop(t, s)
                t.cells[STRAYED] += 1
                continue
            over = True
        if not over:
            break
        _hole(t, s, h["pos"], ts)
    if st["fin"] > 0 and st["next"] >= st["fin"]:
        n = mark(t, i64(CLOSE), s, i64(0), st["next"], ts)
        t.spans[n]["head"] = 1  # closed by its sender, not by the end of the capture
        st["next"] = st["fin"] + 1
        st["fin"] = 0


@inner
def end_stream(t: Tcp, s: int, ts: int) -> None:
    """Flush a direction: held bytes with their holes, then what was acknowledged and never seen."""
    st = t.streams[s]
    if st["state"] == CLOSED:
        return
    settle(t, s, ts, i64(1))
    # One byte acknowledged beyond the last may be a FIN that was not captured: not a hole.
    if st["acked"] > st["next"] + 1 and st["fin"] == 0:
        _hole(t, s, st["acked"], ts)
    elif st["fin"] > st["next"] and st["acked"] > st["next"]:
        _hole(t, s, min(st["acked"], st["fin"]), ts)
    mark(t, i64(CLOSE), s, i64(0), st["next"], ts)


@inner
def reset(t: Tcp, s: int) -> None:
    """Forget a direction; it must have been flushed."""
    st = t.streams[s]
    st["state"] = CLOSED
    st["isn_known"] = 0
    st["strays"] = 0
    st["acked"] = 0
    st["fin"] = 0
    st["first"] = -1
    st["last"] = -1
    st["held"] = 0
    st["held_bytes"] = 0


@njit
def stow(t: Tcp, buffer: Array, arena: Array, target: Array) -> None:
    """Copy the bytes of all held segments to `target`, the new arena: the batch buffer goes away."""
    n = 0
    for k in range(len(t.held)):
        h = t.held[k]
        if h["live"] == 0:
            continue
        at = h["at"]
        for j in range(h["size"]):
            target[n + j] = buffer[at + j] if at >= 0 else arena[-2 - at + j]
        h["at"] = -2 - n
        n += h["size"]
