"""HTTP/2 in clear (RFC 9113): frames of one direction to rows of the `http` table, incrementally.

DATA frames make pieces, END_STREAM and RST_STREAM ends; other frames are passed by length. A header
block is handed out in pieces (Out.pieces). When it is complete, `take` stops (Out.cells[PAUSED]): HPACK
is decoded in Python (http2_heads.py), the fields that count are written into the framer row, and
`resume` emits the head. What unknown bytes hide is passed where a length is known; elsewhere the place
is lost, and found again at the next segment that starts with sane frame headers. With a header block the
HPACK table is lost too, which `tables` counts.
"""

from __future__ import annotations

from skewscope.core.tables import Array
from skewscope.wire import grpc, sse
from skewscope.wire import http2_streams as streams
from skewscope.wire import http2_words as words
from skewscope.wire.http2_words import HEADER_BYTES, MESSAGES, looks_like
from skewscope.wire.http_rows import CHUNK_ROW, END, REQUEST_HEAD, RESYNCHRONISED, emit
from skewscope.wire.jit import inner
from skewscope.wire.layout import GRPC, HOLE, PAUSED, PIECES, Out, Row, Rows, i64

LOST, PREFACE, HEADER, PREFIX, DATA, BLOCK, REST = range(7)
TRANSITIONS = {
    LOST: (PREFACE, HEADER),
    PREFACE: (HEADER, LOST),
    HEADER: (PREFIX, DATA, BLOCK, REST, HEADER, LOST),
    PREFIX: (DATA, BLOCK, REST, HEADER, LOST),
    DATA: (REST, HEADER),
    BLOCK: (REST, HEADER),
    REST: (HEADER,),
}
"""What may follow each phase; a hole leads from any without a length to LOST."""

NO_HEAD = 0
PREFIX_AT = 16
"""Where the carry row keeps the bytes before a frame's content; the frame header is at 0."""

MAX_BLOCK_BYTES = 65536
"""More of a header block is not kept: its beginning says what it says, and the HPACK table is lost."""

BLOCK_COST_NS, BLOCK_BURST_NS = 50_000, 50_000_000
"""A direction may have 20 000 header blocks per second of capture time, 1000 at once, decoded."""

CANCEL, REFUSED, CALM_DOWN = 8, 7, 11
"""RST_STREAM error codes (RFC 9113, 7) that say who is to blame."""

__all__ = ["TRANSITIONS", "begin", "close", "looks_like", "resume", "take"]


@inner
def begin(f: Row, client: bool) -> None:
    """Expect the beginning of a connection: of the client, its preface; of the server, a frame."""
    f["phase"] = PREFACE if client else HEADER
    f["got"] = 0
    f["synced"] = 1


@inner
def _lose(f: Row, h2: Rows) -> None:
    """Lose the place: header blocks and events may be among what is passed."""
    f["phase"] = LOST
    f["got"] = 0
    f["block"] = 0
    f["tables"] += 1
    streams.spoil_all(f, h2)


@inner
def _malformed(f: Row, link: Row, h2: Rows) -> None:
    _lose(f, h2)
    link["misses"] = min(link["misses"] + 1, 250)


@inner
def _end_payload(f: Row) -> None:
    """The content of a frame has passed: its padding follows, or the next frame."""
    f["got"] = 0
    f["left"] = f["pad"]
    f["pad"] = 0
    f["phase"] = REST if f["left"] > 0 else HEADER


@inner
def _begin_frame(f: Row, carry: Array, link: Row, h2: Rows, span: Row, out: Out) -> None:
    """Read the frame header in the carry row."""
    f["got"] = 0
    kind = i64(carry[3])
    if not words.sane(carry, i64(0)) and not words.extension(carry, i64(0)):
        _malformed(f, link, h2)
        return
    f["type"] = kind
    f["flags"] = carry[4]
    f["left"] = words.frame_bytes(carry, i64(0))
    f["stream"] = words.stream_id(carry, i64(0))
    # RFC 9113, 6.10: nothing but its continuation may interrupt a header block.
    if (f["block"] > 0) != (kind == words.CONTINUATION) or (f["block"] > 0 and f["block"] != f["stream"]):
        _malformed(f, link, h2)
        return
    link["confirms"] = min(link["confirms"] + 1, 250)
    f["pad"] = 0
    f["prefix"] = 0
    if kind == words.DATA or kind == words.HEADERS or kind == words.PUSH_PROMISE:
        f["prefix"] = 1 if f["flags"] & words.PADDED else 0
    if kind == words.HEADERS and f["flags"] & words.PRIORITISED:
        f["prefix"] += 5
    elif kind == words.PUSH_PROMISE or kind == words.RST_STREAM:
        f["prefix"] += 4
    if f["prefix"] > f["left"]:
        _malformed(f, link, h2)
        return
    f["left"] -= f["prefix"]
    if f["prefix"] > 0:
        f["phase"] = PREFIX
    else:
        _begin_payload(f, carry, link, h2, span, out)


@inner
def _begin_payload(f: Row, carry: Array, link: Row, h2: Rows, span: Row, out: Out) -> None:
    """The bytes before the content are there: enter the phase of the content."""
    f["got"] = 0
    kind = f["type"]
    padded = f["prefix"] > 0 and kind != words.RST_STREAM and f["flags"] & words.PADDED
    if padded:
        f["pad"] = carry[PREFIX_AT]
        if f["pad"] > f["left"]:
            _malformed(f, link, h2)
            return
        f["left"] -= f["pad"]
    f["phase"] = REST
    if kind == words.DATA:
        _begin_data(f, h2, span)
    elif kind == words.RST_STREAM:
        _reset_stream(f, carry, h2, span, out)
    elif kind == words.HEADERS or kind == words.PUSH_PROMISE:
        f["phase"] = BLOCK
        f["block"] = f["stream"]
        f["block_flags"] = f["flags"]
        f["block_push"] = 1 if kind == words.PUSH_PROMISE else 0
        f["block_bytes"] = 0
        f["block_cut"] = 0
    elif kind == words.CONTINUATION:
        f["phase"] = BLOCK
    if f["left"] == 0:
        _pass_end(f, h2, span, out)


@inner
def _begin_data(f: Row, h2: Rows, span: Row) -> None:
    f["phase"] = DATA
    f["nbytes"] = f["left"]
    f["cut"] = 0
    f["events"] = 0
    f["entry"] = streams.find(f, h2, span["stream"], f["stream"])
    if f["entry"] > 0 and f["left"] > 0:
        h = h2[f["entry"]]
        if h["content"] == MESSAGES:
            grpc.begin_frame(h, f["left"])
        elif h["known"] == 0:
            h["known"] = 1
            sse.reset(h)  # the next frame of a stream almost always starts an event


@inner
def _reset_stream(f: Row, carry: Array, h2: Rows, span: Row, out: Out) -> None:
    """RST_STREAM ends a stream early; NO_ERROR after an answer is an ordinary end (8.1)."""
    code = i64(0)
    for k in range(4):
        code = code << 8 | i64(carry[PREFIX_AT + k])
    status = 500
    if code == 0:
        status = 0
    elif code == CANCEL:
        status = 499
    elif code == REFUSED:
        status = 503
    elif code == CALM_DOWN:
        status = 429
    f["status"] = status
    if span["kind"] != HOLE:
        emit(f, span, i64(END), i64(0), out)
    streams.drop(f, h2, f["stream"])


@inner
def _end_data(f: Row, h2: Rows, span: Row, out: Out) -> None:
    """All content of a DATA frame has passed."""
    if f["entry"] > 0:
        h = h2[f["entry"]]
        f["events"] = h["events"] if h["known"] == 1 else 0
        h["events"] = 0
    if span["kind"] != HOLE and f["nbytes"] > 0:
        emit(f, span, i64(CHUNK_ROW), f["nbytes"], out)
    if f["flags"] & words.END_STREAM:
        _end_stream(f, h2, i64(0), span, out)
    _end_payload(f)


@inner
def _end_stream(f: Row, h2: Rows, status: int, span: Row, out: Out) -> None:
    f["status"] = status
    if span["kind"] != HOLE:
        emit(f, span, i64(END), i64(0), out)
    streams.drop(f, h2, f["stream"])


@inner
def _end_fragment(f: Row, h2: Rows, span: Row, out: Out) -> None:
    """A part of a header block has passed; END_HEADERS tells whether it was the last one."""
    ended = f["flags"] & words.END_HEADERS
    _end_payload(f)
    if not ended:
        return
    f["stream"] = f["block"]
    f["block"] = 0
    if span["kind"] == HOLE:
        f["tables"] += 1
        return
    paid = span["ts"] - BLOCK_BURST_NS
    if f["paid_ns"] != 0:
        paid = max(paid, f["paid_ns"])
    paid += BLOCK_COST_NS
    if paid > span["ts"]:
        f["head"] = NO_HEAD
        f["end_status"] = 0
        f["tables"] += 1
        _emit_head(f, h2, span, out)
        return
    f["paid_ns"] = paid
    f["waiting"] = 1
    out.cells[PAUSED] = i64(span["stream"]) + 1


@inner
def _emit_head(f: Row, h2: Rows, span: Row, out: Out) -> None:
    """Emit what a header block amounts to: a head, an end, both, or nothing that is known."""
    if f["block_push"] == 1:
        return
    head = f["head"]
    if head != NO_HEAD:
        row = emit(f, span, i64(head), max(f["length"], i64(0)), out)
        if head == REQUEST_HEAD and f["target_bytes"] > 0:
            out.http[row]["target"] = f["target"]
        if head == REQUEST_HEAD or f["status"] >= 200:
            streams.enter(f, h2, span["stream"], f["stream"], f["content"])
    if f["block_flags"] & words.END_STREAM:
        _end_stream(f, h2, i64(f["end_status"]), span, out)


@inner
def resume(f: Row, protocols: Array, h2: Rows, span: Row, out: Out) -> None:
    """Go on where `take` stopped: the fields of the header block are in the framer row."""
    f["waiting"] = 0
    out.cells[PAUSED] = 0
    if f["head"] != NO_HEAD and f["content"] == MESSAGES:
        protocols[span["flow"]] = GRPC
    _emit_head(f, h2, span, out)


@inner
def _pass_end(f: Row, h2: Rows, span: Row, out: Out) -> None:
    """The content under way has passed."""
    if f["phase"] == DATA:
        _end_data(f, h2, span, out)
    elif f["phase"] == BLOCK:
        _end_fragment(f, h2, span, out)
    else:
        _end_payload(f)


@inner
def _content(f: Row, h2: Rows, span: Row, src: Array, at: int, ref: int, n: int, out: Out) -> int:
    """Let up to n known bytes of content pass; returns how many did. ref: their byte reference."""
    n = min(n, f["left"])
    if f["phase"] == DATA and f["entry"] > 0:
        h = h2[f["entry"]]
        if h["content"] == MESSAGES:
            grpc.scan(h, src, at, n)
        else:
            sse.scan(h, src, at, n)
    elif f["phase"] == BLOCK and f["block_cut"] == 0:
        if f["block_bytes"] + n > MAX_BLOCK_BYTES:
            f["block_cut"] = 1
        else:
            c = out.cells[PIECES]
            out.cells[PIECES] = c + 1
            out.pieces[c, 0] = span["stream"]
            out.pieces[c, 1] = ref
            out.pieces[c, 2] = n
            out.pieces[c, 3] = 1 if f["block_bytes"] == 0 else 0
            f["block_bytes"] += n
    f["left"] -= n
    if f["left"] == 0:
        _pass_end(f, h2, span, out)
    return n


@inner
def _unknown(f: Row, h2: Rows, span: Row, out: Out) -> None:
    """Let the span's unknown bytes pass where a length is known, else lose the place."""
    skip = span["skip"]
    while skip > 0 and f["waiting"] == 0:
        if f["phase"] < DATA:
            _lose(f, h2)
            return
        n = min(skip, f["left"])
        if f["phase"] == DATA:
            f["cut"] = 1
            if f["entry"] > 0:
                streams.spoil(h2[f["entry"]])
        elif f["phase"] == BLOCK:
            f["block_cut"] = 1
        f["left"] -= n
        skip -= n
        if f["left"] == 0:
            _pass_end(f, h2, span, out)
    if f["waiting"] == 1:
        span["skip"] = skip


@inner
def _resynchronise(f: Row, span: Row, src: Array, at: int, out: Out) -> None:
    """Find the place again at a segment start with sane frame headers."""
    if span["head"] == 0:
        return
    size = span["size"]
    f["got"] = 0
    f["block"] = 0
    f["stream"] = 0
    if words.preface(src, at, size):
        f["phase"] = PREFACE
    elif words.chain(src, at, size) > 0:
        f["phase"] = HEADER
        if f["synced"] == 1 or src[at + 3] != words.SETTINGS or src[at + 4] != 0:
            emit(f, span, i64(RESYNCHRONISED), i64(0), out)
    else:
        return
    f["synced"] = 1


@inner
def _preface(f: Row, link: Row, h2: Rows, c: int) -> None:
    """Take one byte of the preface."""
    if c != words.PREFACE[f["got"]]:
        _malformed(f, link, h2)
        return
    f["got"] += 1
    if f["got"] == len(words.PREFACE):
        f["phase"] = HEADER
        f["got"] = 0
        link["confirms"] = min(link["confirms"] + 1, 250)


@inner
def take(f: Row, carry: Array, link: Row, h2: Rows, span: Row, src: Array, at: int, out: Out) -> int:
    """Take one span (data, or a hole: all unknown); return the known bytes taken.

    Stops behind a complete header block, see above; `skip` of the span is then what is left of it.
    """
    size = span["size"]
    if f["phase"] == LOST and size > 0:
        _resynchronise(f, span, src, at, out)
    k = i64(0)
    while k < size and f["phase"] != LOST and f["waiting"] == 0:
        phase = f["phase"]
        if phase >= DATA:
            ref = span["at"] + k if span["at"] >= 0 else span["at"] - k
            k += _content(f, h2, span, src, at + k, ref, size - k, out)
        elif phase == PREFACE:
            _preface(f, link, h2, i64(src[at + k]))
            k += 1
        else:
            want = HEADER_BYTES if phase == HEADER else f["prefix"]
            carry[f["got"] + (0 if phase == HEADER else PREFIX_AT)] = src[at + k]
            f["got"] += 1
            k += 1
            if f["got"] == want and phase == HEADER:
                _begin_frame(f, carry, link, h2, span, out)
            elif f["got"] == want:
                _begin_payload(f, carry, link, h2, span, out)
    if f["waiting"] == 0 and f["phase"] != LOST:
        _unknown(f, h2, span, out)
    return k


@inner
def close(f: Row, h2: Rows) -> None:
    """End a direction: streams still open have no end."""
    streams.drop_all(f, h2)
    f["tables"] += 1
    f["block"] = 0
    f["waiting"] = 0
    f["stream"] = 0
    f["paid_ns"] = 0
