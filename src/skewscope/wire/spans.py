"""Spans: what reassembly hands to the framers, and how much one packet can make."""

from __future__ import annotations

from skewscope.wire.jit import inner, njit
from skewscope.wire.layout import DATA, L_SEGMENTS, SPANS, Row, Tcp, i64


@njit
def span_spare(t: Tcp) -> int:
    """Return the most spans one packet can make: it evicts a flow and settles two full directions."""
    most: int = 16 * t.limits[L_SEGMENTS] + 64
    return most


@njit
def held_spare(t: Tcp) -> int:
    """Return the most held segments one packet can add: one in each gap between those held."""
    most: int = t.limits[L_SEGMENTS] + 2
    return most


@inner
def fill(
    span: Row, slot: Row, kind: int, stream: int, at: int, size: int, skip: int, pos: int, ts: int
) -> None:
    """Write a span; `frame` and `head` are zero until the caller sets them."""
    way = stream & 1
    span["kind"] = kind
    span["way"] = way
    span["head"] = 0
    span["tap"] = slot["tap"]
    span["stream"] = stream
    span["flow"] = slot["flow"]
    if way == 0:
        span["src"] = slot["a"]
        span["dst"] = slot["b"]
    else:
        span["src"] = slot["b"]
        span["dst"] = slot["a"]
    span["at"] = at
    span["size"] = size
    span["skip"] = skip
    span["pos"] = pos
    span["ts"] = ts
    span["frame"] = 0


@inner
def put(t: Tcp, kind: int, stream: int, at: int, size: int, skip: int, pos: int, ts: int) -> int:
    """Append a span and return its index."""
    n: int = t.cells[SPANS]
    t.cells[SPANS] = n + 1
    fill(t.spans[n], t.slots[stream >> 1], kind, stream, at, size, skip, pos, ts)
    return n


@inner
def mark(t: Tcp, kind: int, stream: int, skip: int, pos: int, ts: int) -> int:
    """Append a span without known bytes and return its index."""
    return put(t, kind, stream, i64(-1), i64(0), skip, pos, ts)


@inner
def shift(at: int, by: int) -> int:
    """Return the byte reference `by` bytes further (layout.SPAN, `at`)."""
    if at <= -2:
        return at - by
    return at + by


@inner
def deliver_part(
    t: Tcp, s: int, pos: int, at: int, size: int, skip: int, ts: int, frame: int, head: int
) -> None:
    """Deliver the part of a segment that lies at or beyond the stream's next position."""
    st = t.streams[s]
    cut = st["next"] - pos
    end = pos + size + skip
    if end <= st["next"]:
        return
    if cut > 0:
        head = 0
        known = min(cut, size)
        at = shift(at, known)
        size -= known
        skip -= cut - known
    n = put(t, i64(DATA), s, at, size, skip, end - size - skip, ts)
    t.spans[n]["frame"] = frame
    t.spans[n]["head"] = head
    st["next"] = end
