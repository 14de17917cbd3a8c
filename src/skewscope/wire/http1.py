"""HTTP/1.1 messages and server-sent events (RFC 9112; WHATWG HTML, 9.2), by an incremental parser.

No header or body text is kept: a method, a target path, a status, lengths and times. TRANSITIONS is
the whole state machine. Unknown bytes (cut off by the snap length, or a hole) pass where a length is
known; elsewhere the place is lost, and found again at the next segment that starts like a head or a
chunk. An element that ends inside a hole has no row, as its time is not known.
"""

from __future__ import annotations

from skewscope.core.tables import Array
from skewscope.wire import http1_words as words
from skewscope.wire import sse
from skewscope.wire.http1_words import CHUNK, NOTHING, looks_like
from skewscope.wire.http_rows import CHUNK_ROW, END, REQUEST_HEAD, RESPONSE_HEAD, RESYNCHRONISED, emit
from skewscope.wire.jit import inner
from skewscope.wire.layout import HOLE, HTTP1, HTTP2, UNKNOWN, Out, Row, i64

LOST, START, HEADERS, LENGTH, UNTIL_CLOSE, CHUNK_SIZE, CHUNK_DATA, CHUNK_END, TRAILERS = range(9)
TRANSITIONS = {
    LOST: (START, CHUNK_SIZE),
    START: (HEADERS, LOST),
    HEADERS: (START, LENGTH, UNTIL_CLOSE, CHUNK_SIZE, LOST),
    LENGTH: (START,),
    UNTIL_CLOSE: (LOST,),
    CHUNK_SIZE: (CHUNK_DATA, TRAILERS, LOST),
    CHUNK_DATA: (CHUNK_END,),
    CHUNK_END: (CHUNK_SIZE, LOST),
    TRAILERS: (START, LOST),
}
"""What may follow each phase; a close leads from any to LOST."""

MAX_HEAD_BYTES = 65536
"""A longer head or trailer section is malformed."""
MAX_ASKS = 31
"""Requests in line of which it is remembered what they asked for; further ones count as ordinary."""

__all__ = ["CHUNK", "NOTHING", "TRANSITIONS", "close", "looks_like", "take"]


@inner
def _lose(f: Row) -> None:
    f["phase"] = LOST
    f["got"] = 0


@inner
def _malformed(f: Row, link: Row) -> None:
    """These bytes are not what the phase asks for: lose the place and count it against the protocol."""
    _lose(f)
    link["misses"] = min(link["misses"] + 1, 250)


@inner
def _ask(link: Row, code: int) -> None:
    """Note a request: the response to a HEAD has no body, the one to a CONNECT opens a tunnel."""
    if link["asked"] < MAX_ASKS:
        link["asks"] |= code << (2 * i64(link["asked"]))
    link["asked"] = min(link["asked"] + 1, 250)


@inner
def _answer(link: Row) -> int:
    """Return the code of the oldest unanswered request, ASKED_OTHER where none is known."""
    if link["asked"] == 0:
        return words.ASKED_OTHER
    code: int = link["asks"] & 3
    link["asks"] >>= 2
    link["asked"] -= 1
    return code


@inner
def _end_message(f: Row, span: Row, out: Out) -> None:
    f["phase"] = START
    f["got"] = 0
    f["head_bytes"] = 0
    if span["kind"] != HOLE:
        emit(f, span, i64(END), i64(0), out)


@inner
def _flush_piece(f: Row, span: Row, out: Out) -> None:
    """Emit the body bytes passed since the last row."""
    if span["kind"] != HOLE and f["nbytes"] > 0:
        emit(f, span, i64(CHUNK_ROW), f["nbytes"], out)
    f["nbytes"] = 0
    f["events"] = 0
    f["cut"] = 0


@inner
def _emit_head(f: Row, carry: Array, span: Row, out: Out) -> None:
    if f["response"] == 1:
        emit(f, span, i64(RESPONSE_HEAD), max(f["length"], i64(0)), out)
        return
    row = emit(f, span, i64(REQUEST_HEAD), max(f["length"], i64(0)), out)
    if f["target_bytes"] > 0:
        words.put_target(carry, f["target_bytes"], row, out)


@inner
def _begin_body(f: Row, span: Row, out: Out) -> None:
    """Enter the phase that the head's framing headers ask for (RFC 9112, 6.3)."""
    f["nbytes"] = 0
    f["events"] = 0
    f["cut"] = 0
    f["got"] = 0
    f["head_bytes"] = 0
    sse.reset(f)
    if f["chunked"] == 1:
        f["phase"] = CHUNK_SIZE
    elif f["length"] > 0:
        f["phase"] = LENGTH
        f["left"] = f["length"]
    elif f["length"] < 0 and f["response"] == 1:
        f["phase"] = UNTIL_CLOSE
    else:
        _end_message(f, span, out)


@inner
def _end_head(f: Row, carry: Array, link: Row, span: Row, out: Out) -> None:
    """The empty line after the headers: emit the head and see what follows it."""
    link["confirms"] = min(link["confirms"] + 1, 250)
    if f["response"] == 1 and f["streaming"] == 0:
        f["streaming"] = 2
    _emit_head(f, carry, span, out)
    if f["response"] == 0:
        _ask(link, f["left"])
        _begin_body(f, span, out)
        return
    status = f["status"]
    if status < 200 and status != 101:
        f["phase"] = START
        f["head_bytes"] = 0
        return
    asked = _answer(link)
    if status == 101 or (asked == words.ASKED_CONNECT and status < 300):
        link["proto"] = HTTP2 if f["upgrade"] == 1 else UNKNOWN
    elif asked == words.ASKED_HEAD or status == 204 or status == 304:
        _end_message(f, span, out)
    else:
        _begin_body(f, span, out)


@inner
def _cut_head(f: Row, carry: Array, link: Row, span: Row, out: Out) -> None:
    """The snap length cut a head: emit what its beginning says; what follows it is not known."""
    if f["phase"] == START:
        if not words.start_line(f, carry, min(f["got"], words.LINE), i64(0)):
            return
    elif f["got"] > 0:
        words.header(f, carry, min(f["got"], words.LINE), i64(0))
    if f["response"] == 1:
        if f["status"] >= 200:
            _answer(link)
    else:
        _ask(link, f["left"])
    _emit_head(f, carry, span, out)


@inner
def _end_line(f: Row, carry: Array, link: Row, span: Row, out: Out) -> None:
    """Act on a complete line in the carry row."""
    n = min(f["got"], words.LINE)
    whole = i64(f["got"] <= words.LINE)
    f["got"] = 0
    if n > 0 and carry[n - 1] == 13:
        n -= 1
    phase = f["phase"]
    if phase == START:
        if n == 0:
            return  # RFC 9112, 2.2: empty lines before a start line are ignored
        if words.start_line(f, carry, n, whole):
            f["phase"] = HEADERS
        else:
            _malformed(f, link)
    elif phase == HEADERS:
        if n == 0:
            _end_head(f, carry, link, span, out)
        else:
            words.header(f, carry, n, whole)
    elif phase == TRAILERS:
        if n == 0:
            _end_message(f, span, out)
    else:
        _begin_chunk(f, link, words.chunk_size(carry, n))


@inner
def _begin_chunk(f: Row, link: Row, size: int) -> None:
    f["head_bytes"] = 0
    if size < 0:
        _malformed(f, link)
        return
    link["confirms"] = min(link["confirms"] + 1, 250)
    f["nbytes"] = size
    f["left"] = size
    f["phase"] = CHUNK_DATA if size > 0 else TRAILERS


@inner
def _line(f: Row, carry: Array, link: Row, span: Row, src: Array, at: int, n: int, out: Out) -> int:
    """Take bytes up to the end of a line; returns how many were taken."""
    k = 0
    ended = False
    while k < n and not ended:
        c = src[at + k]
        k += 1
        ended = c == 10
        if not ended:
            if f["got"] < words.LINE:
                carry[f["got"]] = c
            f["got"] += 1
    f["head_bytes"] += k
    if f["head_bytes"] > MAX_HEAD_BYTES:
        _malformed(f, link)
    elif ended:
        _end_line(f, carry, link, span, out)
    return k


@inner
def _passed(f: Row, span: Row, n: int, out: Out) -> None:
    """Account for n body bytes; ends the chunk or the message that they complete."""
    phase = f["phase"]
    if phase != CHUNK_DATA:
        f["nbytes"] += n
    if phase == UNTIL_CLOSE:
        return
    f["left"] -= n
    if f["left"] > 0:
        return
    spoilt = f["cut"] == 1
    _flush_piece(f, span, out)
    if phase == LENGTH:
        _end_message(f, span, out)
    else:
        f["phase"] = CHUNK_END
        f["got"] = 0
        if spoilt:
            sse.reset(f)  # the next chunk of a stream almost always starts an event


@inner
def _body(f: Row, span: Row, src: Array, at: int, n: int, out: Out) -> int:
    """Let up to n known body bytes pass; returns how many did."""
    if f["phase"] != UNTIL_CLOSE:
        n = min(n, f["left"])
    if f["streaming"] != 2:
        sse.scan(f, src, at, n)
    _passed(f, span, n, out)
    return n


@inner
def _chunk_end(f: Row, link: Row, c: int) -> None:
    """Take one byte of the line end behind a chunk."""
    if c == 13 and f["got"] == 0:
        f["got"] = 1
    elif c == 10:
        f["phase"] = CHUNK_SIZE
        f["got"] = 0
    else:
        _malformed(f, link)


@inner
def _unknown(f: Row, carry: Array, link: Row, span: Row, out: Out) -> None:
    """Let the span's unknown bytes pass where a length is known, else lose the place."""
    skip = span["skip"]
    while skip > 0:
        phase = f["phase"]
        if phase in (LENGTH, CHUNK_DATA, UNTIL_CLOSE):
            n = skip if phase == UNTIL_CLOSE else min(skip, f["left"])
            f["cut"] = 1
            f["events"] = 0
            sse.spoil(f)
            _passed(f, span, n, out)
            skip -= n
        elif phase == CHUNK_END:
            n = min(skip, 2 - i64(f["got"]))
            f["got"] += n
            skip -= n
            if f["got"] == 2:
                f["phase"] = CHUNK_SIZE
                f["got"] = 0
        else:
            if span["kind"] == HOLE:
                link["asked"] = 0
                link["asks"] = 0
                f["streaming"] = 0
            elif phase == HEADERS or (phase == START and f["got"] > 0):
                _cut_head(f, carry, link, span, out)
            _lose(f)
            return


@inner
def _resynchronise(f: Row, span: Row, src: Array, at: int, out: Out) -> None:
    """Find the place again at a segment start, if it looks like the start of an element."""
    if span["head"] == 0:
        return
    found = looks_like(src, at, span["size"])
    if found == NOTHING:
        return
    if f["synced"] == 1 or found == CHUNK:
        emit(f, span, i64(RESYNCHRONISED), i64(0), out)
    f["synced"] = 1
    f["got"] = 0
    f["head_bytes"] = 0
    f["phase"] = START
    if found == CHUNK:
        f["phase"] = CHUNK_SIZE
        f["events"] = 0
        f["cut"] = 0
        sse.reset(f)


@inner
def take(f: Row, carry: Array, link: Row, span: Row, src: Array, at: int, out: Out) -> int:
    """Take one span (data, or a hole: all unknown); return the known bytes taken.

    A tunnel or an upgrade sets the link to the protocol that follows, UNKNOWN where that is not told.
    """
    size = span["size"]
    if f["phase"] == LOST and size > 0:
        _resynchronise(f, span, src, at, out)
    k = i64(0)
    while k < size and f["phase"] != LOST and link["proto"] == HTTP1:
        phase = f["phase"]
        if phase in (LENGTH, CHUNK_DATA, UNTIL_CLOSE):
            k += _body(f, span, src, at + k, size - k, out)
        elif phase == CHUNK_END:
            _chunk_end(f, link, src[at + k])
            k += 1
        else:
            k += _line(f, carry, link, span, src, at + k, size - k, out)
    if span["skip"] > 0 and f["phase"] != LOST and link["proto"] == HTTP1:
        _unknown(f, carry, link, span, out)
    if f["phase"] == LENGTH or f["phase"] == UNTIL_CLOSE:
        _flush_piece(f, span, out)
    return k


@inner
def close(f: Row, span: Row, out: Out) -> None:
    """End a direction; a FIN (`head` of the span) ends a body that lasts until the close."""
    if f["phase"] == UNTIL_CLOSE and span["head"] == 1:
        emit(f, span, i64(END), i64(0), out)
    f["phase"] = LOST
