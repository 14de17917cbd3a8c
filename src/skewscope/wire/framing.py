"""Spans to elements: which protocol a flow speaks, decided by content, and dispatch to its framer.

A framer is a module with three kernels: a signature (`looks_like`), `take` for one span, and `close`
where an element may be in progress. It is named in `signature`, `frame` and `_close`, nowhere else.

A flow's protocol is the first signature that a segment start of either direction shows. It is given
up when the framer finds MISSES contradictions before STICKY confirmations, and stays from then on.
Flows without a signature are tested at every segment start, and count as opaque after MAX_TRIES.
"""

from __future__ import annotations

from skewscope.core.tables import Array
from skewscope.wire import gloo, http1, http2, nccl, tls, zmtp
from skewscope.wire.jit import inner, njit
from skewscope.wire.layout import (
    CARRY,
    CLOSE,
    DATA,
    GLOO,
    HTTP1,
    HTTP2,
    HTTP_ROWS,
    MESSAGE_ROWS,
    NCCL,
    OPAQUE,
    OPEN,
    PAUSED,
    PIECES,
    RECORD_ROWS,
    TEXT_BYTES,
    TLS,
    UNKNOWN,
    ZMTP,
    Framing,
    Out,
    Row,
    Rows,
)
from skewscope.wire.spans import shift

STICKY = 4
MISSES = 8
MAX_TRIES = 256


@inner
def signature(link: Row, src: Array, at: int, size: int, skip: int) -> int:
    """Return the protocol whose signature the segment start at `at` shows, or UNKNOWN."""
    if gloo.looks_like(src, at, size, skip):
        return GLOO
    if tls.looks_like(src, at, size):
        return TLS
    if zmtp.looks_like(src, at, size):
        return ZMTP
    if nccl.looks_like(src, at, size):
        return NCCL
    if http1.looks_like(src, at, size) != http1.NOTHING:
        return HTTP1
    if http2.looks_like(link, src, at, size, skip):
        return HTTP2
    return UNKNOWN


@inner
def _reset(fr: Framing, slot: int, link: Row) -> None:
    """Forget the protocol of a flow and where its framers stood."""
    link["proto"] = UNKNOWN
    link["confirms"] = 0
    link["misses"] = 0
    link["asked"] = 0
    link["tries"] = 0
    link["frames"] = 0
    link["ways"] = 0
    link["sizes"] = 0
    for s in (2 * slot, 2 * slot + 1):
        http2.close(fr.framers[s], fr.h2)
        fr.framers[s]["phase"] = 0
        fr.framers[s]["got"] = 0
        fr.framers[s]["synced"] = 0
        fr.framers[s]["streaming"] = 0


@inner
def _close(fr: Framing, span: Row, out: Out) -> None:
    """End one direction."""
    s = span["stream"]
    link = fr.links[s >> 1]
    f = fr.framers[s]
    proto = link["proto"]
    if proto == GLOO:
        gloo.close(f, span, out.messages, out.cells)
    elif proto == HTTP1:
        http1.close(f, span, out)
    elif proto == HTTP2:
        http2.close(f, fr.h2)
    elif proto == ZMTP:
        zmtp.close(f, span, out.messages, out.cells)
    elif proto == NCCL:
        nccl.close(f, span, out.messages, out.cells)
    f["phase"] = 0
    f["got"] = 0


@inner
def _classify(protocols: Array, link: Row, f: Row, span: Row, src: Array, at: int) -> None:
    """Look for a signature at a segment start of a flow without protocol."""
    if span["kind"] != DATA or span["head"] == 0 or span["size"] == 0:
        return
    found = signature(link, src, at, span["size"], span["skip"])
    if found == UNKNOWN and nccl.chained(link, span, src, at):
        link["proto"] = NCCL
        nccl.begin(f, link)
    elif found == UNKNOWN:
        link["tries"] = min(link["tries"] + 1, MAX_TRIES)
        if link["tries"] == MAX_TRIES:
            link["proto"] = OPAQUE
    else:
        link["proto"] = found
        link["confirms"] = 0
        link["misses"] = 0
    protocols[span["flow"]] = link["proto"]


@inner
def _take_http1(fr: Framing, link: Row, span: Row, src: Array, at: int, out: Out) -> bool:
    """Take a span of HTTP/1; return whether the rest of it is to be taken as another protocol."""
    s = span["stream"]
    taken = http1.take(fr.framers[s], fr.carry[s], link, span, src, at, out)
    proto = link["proto"]
    if proto == HTTP1:
        return False
    _reset(fr, s >> 1, link)  # a tunnel or an upgrade
    if proto != HTTP2:
        return False
    link["proto"] = HTTP2
    fr.protocols[span["flow"]] = HTTP2
    http2.begin(fr.framers[s], False)  # the answer came from the server
    http2.begin(fr.framers[s ^ 1], True)
    _trim(span, taken)
    return True


@inner
def _take_http2(fr: Framing, link: Row, span: Row, src: Array, at: int, out: Out) -> bool:
    """Take a span of HTTP/2; return whether it stopped at a header block that must be decoded first."""
    s = span["stream"]
    taken = http2.take(fr.framers[s], fr.carry[s], link, fr.h2, span, src, at, out)
    if out.cells[PAUSED] == 0:
        return False
    _trim(span, taken)
    return True


@inner
def _trim(span: Row, taken: int) -> None:
    """Cut the bytes taken off a span."""
    span["at"] = shift(span["at"], taken)
    span["size"] -= taken
    span["head"] = 0


@inner
def _event(fr: Framing, span: Row, out: Out) -> None:
    """Take a span without bytes: a new connection, or the end of a direction."""
    if span["kind"] == OPEN:
        slot = span["stream"] >> 1
        _reset(fr, slot, fr.links[slot])
    else:
        _close(fr, span, out)


@inner
def _full(span: Row, out: Out) -> bool:
    """Tell whether the rows of one more span might not fit."""
    rows = max(out.cells[MESSAGE_ROWS], out.cells[HTTP_ROWS], out.cells[RECORD_ROWS], out.cells[PIECES])
    if len(out.http) - rows < rows_spare(span["size"]):
        return True
    return bool(len(out.text) - out.cells[TEXT_BYTES] < span["size"] + CARRY)


@njit
def frame(spans: Rows, start: int, count: int, buffer: Array, arena: Array, fr: Framing, out: Out) -> int:
    """Frame spans [start, count); return the first one not taken because `out` might not hold it.

    Or the one taken in part, up to a header block of HTTP/2: see out.cells[PAUSED] (wire/http2.py).
    Calls get records and single arrays where they can: every array passed costs atomic reference
    counts, and this loop runs for every packet.
    """
    if out.cells[PAUSED] > 0:
        http2.resume(fr.framers[out.cells[PAUSED] - 1], fr.protocols, fr.h2, spans[start], out)
    i = start
    while i < count:
        span = spans[i]
        if _full(span, out):
            return i
        if span["kind"] == OPEN or span["kind"] == CLOSE:
            _event(fr, span, out)
            i += 1
            continue
        at = span["at"]
        src = buffer
        if at < 0:
            src = arena
            at = -2 - at
        s = span["stream"]
        link = fr.links[s >> 1]
        if link["proto"] == UNKNOWN or link["proto"] == OPAQUE:
            _classify(fr.protocols, link, fr.framers[s], span, src, at)
        proto = link["proto"]
        if proto in (UNKNOWN, OPAQUE):
            i += 1
            continue
        sticky = link["confirms"] >= STICKY
        f = fr.framers[s]
        if proto == GLOO:
            gloo.take(f, fr.carry[s], link, span, src, at, sticky, out.messages, out.cells)
        elif proto == TLS:
            tls.take(f, fr.carry[s], link, span, src, at, out.records, out.cells)
        elif proto == ZMTP:
            zmtp.take(f, fr.carry[s], link, span, src, at, sticky, out.messages, out.cells)
        elif proto == NCCL:
            nccl.take(f, fr.carry[s], link, span, src, at, out.messages, out.cells)
        elif proto == HTTP1:
            if _take_http1(fr, link, span, src, at, out):
                continue
        elif proto == HTTP2:  # noqa: SIM102
            if _take_http2(fr, link, span, src, at, out):
                return i
        if not sticky:
            if f["phase"] == 0 and span["head"] == 1:
                link["misses"] = min(link["misses"] + 1, 250)
            if link["misses"] >= MISSES and link["confirms"] < STICKY:
                _reset(fr, s >> 1, link)
        i += 1
    return count


@njit
def rows_spare(size: int) -> int:
    """Return the most rows that `size` bytes can make: an empty ZeroMQ message takes two."""
    return size // 2 + 8
