"""ZeroMQ messages: the greeting and the frames of ZMTP 3.0 and 3.1 in each direction of a connection.

Greeting (rfc.zeromq.org/spec/23 and /37), 64 bytes: FF, eight of padding, 7F; version major 3 and minor;
mechanism, 20 bytes; as-server; 31 zeros. Then frames: a flags byte (1 more frames follow, 2 the length is
8 bytes instead of 1, 4 command), the length, the body. Frames of one message are one row of framing ZMTP,
kind 0, nbytes the sum of their bodies; commands (READY, SUBSCRIBE, PING, and all of an encrypted
connection) make none. vLLM's scheduler output travels so: control traffic, no collective.

Phases: LOST -> GREETING at a segment that starts with one; GREETING -> HEADER -> BODY -> HEADER. Out of a
hole a confirmed flow goes on at a segment that is exactly one frame.
"""

from __future__ import annotations

from skewscope.core.tables import Array
from skewscope.wire.gloo import emit
from skewscope.wire.jit import inner
from skewscope.wire.layout import HOLE, Row, Rows, i64

FRAMING_ZMTP = 4
GREETING_BYTES = 64
SIGNATURE_BYTES = 10
VERSION = 3
MORE, LONG, COMMAND, RESERVED = 1, 2, 4, 0xF8
MAX_FRAME_BYTES = 1 << 40
GREETED = 4
"""Confirmations that a whole greeting counts for: 64 bytes do not come about by chance."""

LOST, GREETING, HEADER, BODY = 0, 1, 2, 3


@inner
def looks_like(src: Array, at: int, size: int) -> bool:
    """Tell whether the bytes at `at` begin a greeting; libzmq sends its first ten in a segment alone."""
    if size < SIGNATURE_BYTES or src[at] != 0xFF or src[at + 9] != 0x7F:
        return False
    for k in range(1, 8):
        if src[at + k] != 0:
            return False
    return bool(size == SIGNATURE_BYTES or src[at + 10] == VERSION)


@inner
def _length(src: Array, at: int) -> int:
    """Return the length in the frame header at `at`; from 2^63 on it comes out negative."""
    if not src[at] & LONG:
        return i64(src[at + 1])
    value = i64(0)
    for k in range(8):
        value = (value << 8) | i64(src[at + 1 + k])
    return value


@inner
def _fits(src: Array, at: int, size: int, skip: int) -> bool:
    """Tell whether a segment (size known bytes, then skip unknown ones) is exactly one frame."""
    head = 9 if size > 0 and src[at] & LONG else 2
    if size < head or src[at] & RESERVED:
        return False
    return head + _length(src, at) == size + skip


@inner
def _lose(f: Row, link: Row) -> None:
    """The chain of frames does not hold."""
    f["phase"] = LOST
    f["got"] = 0
    f["synced"] = 0
    link["misses"] = min(link["misses"] + 1, 250)


@inner
def _greeted(f: Row, carry: Array, link: Row) -> None:
    """Judge the greeting in the carry row."""
    f["got"] = 0
    whole = carry[0] == 0xFF and carry[9] == 0x7F and carry[10] == VERSION
    for k in range(33, GREETING_BYTES):
        whole = whole and carry[k] == 0
    if whole:
        f["phase"] = HEADER
        f["synced"] = 0
        link["confirms"] = min(link["confirms"] + GREETED, 250)
    else:
        _lose(f, link)


@inner
def _end_frame(f: Row, span: Row, end_ns: int, made: Rows, cells: Array) -> None:
    """A frame's body has passed: the last frame of a message makes the row."""
    f["phase"] = HEADER
    if f["flags"] & COMMAND:
        return
    f["synced"] = f["flags"] & MORE  # set inside a message of several frames
    if not f["synced"]:
        f["kind"] = 0
        f["collective"] = 0
        f["tag"] = 0
        emit(f, span, end_ns, i64(FRAMING_ZMTP), made, cells)


@inner
def _begin_frame(f: Row, carry: Array, link: Row) -> bool:
    """Read the frame header in the carry row; returns whether a frame begins, else the chain is lost."""
    f["got"] = 0
    length = _length(carry, i64(0))
    if length < 0 or length > MAX_FRAME_BYTES:
        _lose(f, link)
        return False
    f["flags"] = carry[0]
    f["left"] = length
    if not carry[0] & COMMAND:
        f["nbytes"] = f["nbytes"] + length if f["synced"] else length
    f["phase"] = BODY
    return True


@inner
def _header_byte(f: Row, carry: Array, link: Row, span: Row, byte: int, made: Rows, cells: Array) -> None:
    """Take one byte of a frame header."""
    if f["got"] == 0:
        if byte & RESERVED:
            _lose(f, link)
            return
        if f["synced"] == 0:
            f["ts"] = span["ts"]
            f["frame"] = span["frame"]
    carry[f["got"]] = byte
    f["got"] += 1
    if f["got"] == (9 if carry[0] & LONG else 2) and _begin_frame(f, carry, link) and f["left"] == 0:
        _end_frame(f, span, span["ts"], made, cells)


@inner
def _known(
    f: Row, carry: Array, link: Row, span: Row, src: Array, at: int, sticky: bool, made: Rows, cells: Array
) -> None:
    """Take the known bytes of a span."""
    size = span["size"]
    k = i64(0)
    while k < size:
        if f["phase"] == LOST:
            if k > 0 or span["head"] == 0:
                return
            if looks_like(src, at, size):
                f["phase"] = GREETING
            elif sticky and _fits(src, at, size, span["skip"]):
                f["phase"] = HEADER
            else:
                return
        if f["phase"] == GREETING:
            take_bytes = min(GREETING_BYTES - f["got"], size - k)
            for j in range(take_bytes):
                carry[f["got"] + j] = src[at + k + j]
            f["got"] += take_bytes
            k += take_bytes
            if f["got"] == GREETING_BYTES:
                _greeted(f, carry, link)
        elif f["phase"] == HEADER:
            _header_byte(f, carry, link, span, i64(src[at + k]), made, cells)
            k += 1
        else:
            passed = min(f["left"], size - k)
            f["left"] -= passed
            k += passed
            if f["left"] == 0:
                _end_frame(f, span, span["ts"], made, cells)


@inner
def take(
    f: Row, carry: Array, link: Row, span: Row, src: Array, at: int, sticky: bool, made: Rows, cells: Array
) -> None:
    """Take one span (data, or a hole: all unknown); a message that ends in a hole gets end_ns = 0."""
    _known(f, carry, link, span, src, at, sticky, made, cells)
    skip = span["skip"]
    if skip == 0:
        return
    if f["phase"] == BODY:
        passed = min(f["left"], skip)
        f["left"] -= passed
        skip -= passed
        if f["left"] == 0:
            _end_frame(f, span, i64(0) if span["kind"] == HOLE else span["ts"], made, cells)
    if skip > 0:
        f["phase"] = LOST
        f["got"] = 0
        f["synced"] = 0


@inner
def close(f: Row, span: Row, made: Rows, cells: Array) -> None:
    """End a direction: a message in progress is emitted with end_ns = 0."""
    if f["phase"] == BODY and not f["flags"] & COMMAND:
        f["kind"] = 0
        f["collective"] = 0
        f["tag"] = 0
        emit(f, span, i64(0), i64(FRAMING_ZMTP), made, cells)
    f["phase"] = LOST
    f["got"] = 0
    f["synced"] = 0
