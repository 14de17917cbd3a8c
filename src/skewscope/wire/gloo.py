"""Gloo messages: a chain of 48-byte preambles and payloads in each direction of a connection.

Preamble (gloo/transport/tcp/pair.h, `Op`): six little-endian u64: nbytes (preamble included), opcode,
slot, offset, length, roffset; slot = prefix << 56 | tag << 24 | delta (gloo/types.h, `Slot`).
Opcodes: 0 send buffer, 1 send unbound buffer, 2 notify send ready, 3 notify receive ready; only the
first two carry `length` bytes of payload.

Phases: LOST -> PREAMBLE where a segment starts with a plausible preamble; PREAMBLE -> BODY or
PREAMBLE when 48 bytes are there and plausible, else LOST; BODY -> PREAMBLE when its bytes have passed,
known or not. The first 24 bytes say all that a row needs, so a preamble cut behind them still counts.
"""

from __future__ import annotations

from skewscope.core.tables import Array
from skewscope.wire.jit import inner, njit
from skewscope.wire.layout import HOLE, MESSAGE_ROWS, Row, Rows, i64

FRAMING_GLOO = 1
PREAMBLE_BYTES = 48
NAMED_BYTES = 24
"""nbytes, opcode and slot: what a row is made of."""
MAX_PREFIX = 15
MAX_MESSAGE_BYTES = 1 << 40
CARRIES_DATA = 1
"""Opcodes up to this one carry payload."""

LOST, PREAMBLE, BODY = 0, 1, 2


@inner
def _u64(src: Array, at: int) -> int:
    """Return a little-endian u64; from 2^63 on it comes out negative and so implausible."""
    value = i64(0)
    for k in range(8):
        value |= i64(src[at + k]) << (8 * k)
    return value


@njit
def plausible(src: Array, at: int, have: int) -> bool:
    """Tell whether the `have` >= 24 bytes at `at` can be (the beginning of) a preamble."""
    if src[at + 6] != 0 or src[at + 8] > 3 or src[at + 7] != 0:  # almost all other traffic ends here
        return False
    nbytes = _u64(src, at)
    opcode = _u64(src, at + 8)
    if nbytes < PREAMBLE_BYTES or nbytes > MAX_MESSAGE_BYTES or opcode < 0 or opcode > 3:
        return False
    if opcode > CARRIES_DATA and nbytes != PREAMBLE_BYTES:
        return False
    if src[at + 23] > MAX_PREFIX:
        return False
    if have < PREAMBLE_BYTES:
        return True
    offset = _u64(src, at + 24)
    length = _u64(src, at + 32)
    roffset = _u64(src, at + 40)
    if min(offset, length, roffset) < 0 or max(offset, length, roffset) > MAX_MESSAGE_BYTES:
        return False
    return opcode > CARRIES_DATA or nbytes == PREAMBLE_BYTES + length


@inner
def looks_like(src: Array, at: int, size: int, skip: int) -> bool:
    """Tell whether a segment start (size known bytes, then skip unknown ones) is a preamble."""
    if size >= PREAMBLE_BYTES:
        return plausible(src, at, i64(PREAMBLE_BYTES))
    return size >= NAMED_BYTES and size + skip >= PREAMBLE_BYTES and plausible(src, at, size)


@inner
def emit(f: Row, span: Row, end_ns: int, framing: int, made: Rows, cells: Array) -> None:
    """Append the row of the message in framer row `f`."""
    n = cells[MESSAGE_ROWS]
    cells[MESSAGE_ROWS] = n + 1
    row = made[n]
    row["ts_ns"] = f["ts"]
    row["end_ns"] = end_ns
    row["tap"] = span["tap"]
    row["frame"] = f["frame"]
    row["flow"] = span["flow"]
    row["way"] = span["way"]
    row["src"] = span["src"]
    row["dst"] = span["dst"]
    row["framing"] = framing
    row["kind"] = f["kind"]
    row["collective"] = f["collective"]
    row["tag"] = f["tag"]
    row["nbytes"] = f["nbytes"]


@inner
def _begin(f: Row, carry: Array, have: int, link: Row) -> bool:
    """Read the preamble in the carry row; returns whether a message begins, else the chain is lost."""
    f["got"] = 0
    if not plausible(carry, i64(0), have):
        f["phase"] = LOST
        link["misses"] = min(link["misses"] + 1, 250)
        return False
    link["confirms"] = min(link["confirms"] + 1, 250)
    slot = _u64(carry, i64(16))
    f["left"] = _u64(carry, i64(0)) - PREAMBLE_BYTES
    f["nbytes"] = f["left"]
    f["kind"] = carry[8]
    f["collective"] = carry[23]
    f["tag"] = (slot >> 24) & 0xFFFFFFFF
    f["phase"] = BODY
    return True


@inner
def _pass_body(f: Row, span: Row, size: int, end_ns: int, made: Rows, cells: Array) -> int:
    """Let up to `size` body bytes pass; emits the message when complete; returns the bytes taken."""
    take: int = min(f["left"], size)
    f["left"] -= take
    if f["left"] == 0:
        emit(f, span, end_ns, i64(FRAMING_GLOO), made, cells)
        f["phase"] = PREAMBLE
    return take


@inner
def _find(src: Array, at: int, size: int) -> int:
    """Return the offset of the first whole plausible preamble in the known bytes, -1 if none."""
    for k in range(size - PREAMBLE_BYTES + 1):
        if plausible(src, at + k, i64(PREAMBLE_BYTES)):
            return k
    return -1


@inner
def _known(
    f: Row,
    carry: Array,
    link: Row,
    span: Row,
    src: Array,
    at: int,
    sticky: bool,
    made: Rows,
    cells: Array,
) -> None:
    """Take the known bytes of a span."""
    size = span["size"]
    k = i64(0)
    while k < size:
        if f["phase"] == LOST:
            step = i64(-1)
            if k == 0 and span["head"] == 1 and looks_like(src, at, size, span["skip"]):
                step = i64(0)
            elif sticky:
                step = i64(_find(src, at + k, size - k))
            if step < 0:
                return
            k += step
            f["phase"] = PREAMBLE
        if f["phase"] == PREAMBLE:
            if f["got"] == 0:
                f["ts"] = span["ts"]
                f["frame"] = span["frame"]
            take = min(PREAMBLE_BYTES - f["got"], size - k)
            for j in range(take):
                carry[f["got"] + j] = src[at + k + j]
            f["got"] += take
            k += take
            began = f["got"] == PREAMBLE_BYTES and _begin(f, carry, i64(PREAMBLE_BYTES), link)
            if began and f["left"] == 0:
                _pass_body(f, span, i64(0), span["ts"], made, cells)
        else:
            k += _pass_body(f, span, size - k, span["ts"], made, cells)


@inner
def _unknown(f: Row, carry: Array, link: Row, span: Row, end_ns: int, made: Rows, cells: Array) -> None:
    """Let the unknown bytes behind the known ones pass: only a named message leads across them."""
    skip = span["skip"]
    if f["phase"] == PREAMBLE and f["got"] >= NAMED_BYTES and skip >= PREAMBLE_BYTES - f["got"]:
        skip -= PREAMBLE_BYTES - f["got"]
        if _begin(f, carry, i64(f["got"]), link) and f["left"] == 0:
            _pass_body(f, span, i64(0), end_ns, made, cells)
    while skip > 0 and f["phase"] == BODY:
        skip -= _pass_body(f, span, skip, end_ns, made, cells)
    if skip > 0:
        f["phase"] = LOST
        f["got"] = 0


@inner
def take(
    f: Row,
    carry: Array,
    link: Row,
    span: Row,
    src: Array,
    at: int,
    sticky: bool,
    made: Rows,
    cells: Array,
) -> None:
    """Take one span (data, or a hole: all unknown). `sticky`: search for preambles inside segments.

    A message that ends in a hole gets end_ns = 0: the segment that carried its end was not seen.
    """
    _known(f, carry, link, span, src, at, sticky, made, cells)
    if span["skip"] > 0:
        _unknown(f, carry, link, span, i64(0) if span["kind"] == HOLE else span["ts"], made, cells)


@inner
def close(f: Row, span: Row, made: Rows, cells: Array) -> None:
    """End a direction: a message in progress is emitted with end_ns = 0."""
    if f["phase"] == BODY:
        emit(f, span, i64(0), i64(FRAMING_GLOO), made, cells)
    f["phase"] = LOST
    f["got"] = 0
