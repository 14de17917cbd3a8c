"""NCCL messages over sockets: the greeting of a connection and the sizes before its messages.

NCCL 2.16 to 2.30 (net_socket.cc, socket.cc). A connection carries data from the side that opened it, nothing
back. Greeting: magic (8 bytes), type (4), index of the socket (1), all little-endian. Each message
begins with its size (4 bytes); up to 128 bytes of data follow in the same write. The rest follows on the same
socket where it is the only one (index 0, the default), else it goes over the other sockets: then the row
ends with the size. A data socket has raw bytes only: its flow is NCCL's, and makes no rows.

Without the greeting in sight a flow is NCCL's after CHAIN sizes, each alone in a segment at exactly the place
where the one before says, and nothing back (`chained`). Nothing else on the wire says where messages begin.

A size that the snap length cut off (it may stand behind other data) is taken for that of the message before:
sizes repeat. Where it was another one, the chain is lost at the next size in sight.

Phases: LOST -> HELLO at the magic; HELLO -> SIZE; SIZE -> BODY -> SIZE. The first size must be a segment
of its own (with its data if short), and so must the first one out of a hole.
"""

from __future__ import annotations

from skewscope.core.tables import Array
from skewscope.wire.gloo import emit
from skewscope.wire.jit import inner
from skewscope.wire.layout import HOLE, Row, Rows, i64

FRAMING_NCCL = 2
MAGIC = 0x564A_B9F2_FC4B_9D6C
TYPE_AT, INDEX_AT, HELLO_BYTES = 8, 12, 13
NET_SOCKET, LAST_TYPE = 3, 5
SIZE_BYTES = 4
INLINE_BYTES = 128
"""NCCL_SOCKET_INLINE's default: data up to this length goes with its size."""
MAX_MESSAGE_BYTES = 1 << 26
"""A message is a slice of a buffer: 2 MiB by default, and NCCL_BUFFSIZE is seldom raised tenfold."""
CHAIN = 8
GREETED = 4
"""Confirmations that a greeting or a chain counts for: neither comes about by chance."""

LOST, HELLO, SIZE, BODY = 0, 1, 2, 3
BOTH_WAYS = 3


@inner
def _u32(src: Array, at: int) -> int:
    """Return a little-endian u32."""
    value = i64(0)
    for k in range(SIZE_BYTES):
        value |= i64(src[at + k]) << (8 * k)
    return value


@inner
def looks_like(src: Array, at: int, size: int) -> bool:
    """Tell whether the bytes at `at` begin a greeting: the magic alone, or a known type behind it."""
    if size < TYPE_AT or src[at] != 0x6C:  # almost all other traffic ends here
        return False
    if _u32(src, at) | _u32(src, at + SIZE_BYTES) << 32 != MAGIC:
        return False
    return bool(size < INDEX_AT or 1 <= _u32(src, at + TYPE_AT) <= LAST_TYPE)


@inner
def _alone(src: Array, at: int, size: int, skip: int) -> int:
    """Return the message size that a segment holds with its short data only, -1 if it holds anything else.

    The segment: size known bytes at `at`, then skip unknown ones.
    """
    if size < SIZE_BYTES:
        return i64(-1)
    nbytes = _u32(src, at)
    if nbytes > MAX_MESSAGE_BYTES:
        return i64(-1)
    inline = nbytes if nbytes <= INLINE_BYTES else i64(0)
    return nbytes if size + skip == SIZE_BYTES + inline else i64(-1)


@inner
def chained(link: Row, span: Row, src: Array, at: int) -> bool:
    """Note a segment start of a flow without protocol; tell whether it is the CHAIN-th size of a chain."""
    link["ways"] |= 1 << span["way"]
    if link["ways"] == BOTH_WAYS:
        return False
    end = span["pos"] + span["size"] + span["skip"]
    if link["sizes"] > 0 and span["pos"] < link["due"]:
        if end > link["due"]:  # the next size is not at the start of a segment
            link["sizes"] = 0
        return False
    nbytes = i64(_alone(src, at, span["size"], span["skip"]))
    if nbytes < 0 or (link["sizes"] > 0 and span["pos"] != link["due"]):
        link["sizes"] = 0
        return False
    link["due"] = span["pos"] + SIZE_BYTES + nbytes
    if nbytes > INLINE_BYTES:
        link["sizes"] += 1
    return bool(link["sizes"] == CHAIN)


@inner
def begin(f: Row, link: Row) -> None:
    """Begin a direction at a size that ends a chain."""
    f["phase"] = SIZE
    f["got"] = 0
    f["stream"] = 0
    f["synced"] = 1
    f["cut"] = 0
    f["length"] = 0
    link["confirms"] = GREETED


@inner
def _greeted(f: Row, carry: Array, link: Row) -> None:
    """Judge the greeting in the carry row."""
    f["got"] = 0
    f["phase"] = SIZE if _u32(carry, i64(TYPE_AT)) == NET_SOCKET else LOST
    f["synced"] = 0
    f["cut"] = 0
    f["stream"] = carry[INDEX_AT]
    f["length"] = 0
    link["confirms"] = GREETED


@inner
def _end(f: Row, span: Row, end_ns: int, made: Rows, cells: Array) -> None:
    """The last byte of a message has passed."""
    f["phase"] = SIZE
    f["got"] = 0
    f["kind"] = 0
    f["collective"] = 0
    f["tag"] = 0
    emit(f, span, end_ns, i64(FRAMING_NCCL), made, cells)


@inner
def _start(f: Row, span: Row) -> None:
    """Note where the first byte of a size is."""
    if f["got"] == 0:
        f["ts"] = span["ts"]
        f["frame"] = span["frame"]


@inner
def _sized(f: Row, nbytes: int, span: Row, made: Rows, cells: Array) -> None:
    """A message begins, unless its size is impossible: then the chain is lost."""
    if nbytes > (f["length"] if f["cut"] == 1 else MAX_MESSAGE_BYTES):
        f["phase"] = LOST
        f["got"] = 0
        return
    f["synced"] = 1
    f["length"] = max(f["length"], nbytes)
    f["nbytes"] = nbytes
    f["left"] = nbytes if f["stream"] == 0 or nbytes <= INLINE_BYTES else 0
    f["phase"] = BODY
    if f["left"] == 0:
        _end(f, span, span["ts"], made, cells)


@inner
def _found(f: Row, span: Row, src: Array, at: int) -> bool:
    """Find a way in at the start of a segment: a greeting, or behind a hole a size not above all before."""
    if looks_like(src, at, span["size"]):
        f["phase"] = HELLO
        f["got"] = 0
        return True
    if f["synced"] == 1 and 0 <= _alone(src, at, span["size"], span["skip"]) <= f["length"]:
        f["phase"] = SIZE
        f["got"] = 0
        return True
    return False


@inner
def _size_byte(
    f: Row, carry: Array, span: Row, src: Array, at: int, k: int, made: Rows, cells: Array
) -> None:
    """Take the byte at `at + k` of a size; the first size of a direction must be alone in its segment."""
    if f["got"] == 0:
        alone = k == 0 and span["head"] == 1 and _alone(src, at, span["size"], span["skip"]) >= 0
        if f["synced"] == 0 and not alone:
            f["phase"] = LOST
            return
    _start(f, span)
    carry[f["got"]] = src[at + k]
    f["got"] += 1
    if f["got"] == SIZE_BYTES:
        _sized(f, i64(_u32(carry, i64(0))), span, made, cells)
        f["cut"] = 0


@inner
def _known(f: Row, carry: Array, link: Row, span: Row, src: Array, at: int, made: Rows, cells: Array) -> None:
    """Take the known bytes of a span."""
    size = span["size"]
    k = i64(0)
    while k < size:
        if f["phase"] == LOST and (k > 0 or span["head"] == 0 or not _found(f, span, src, at)):
            return
        if f["phase"] == HELLO:
            carry[f["got"]] = src[at + k]
            f["got"] += 1
            k += 1
            if f["got"] == HELLO_BYTES:
                _greeted(f, carry, link)
        elif f["phase"] == SIZE:
            _size_byte(f, carry, span, src, at, k, made, cells)
            k += 1
        else:
            passed = min(f["left"], size - k)
            f["left"] -= passed
            k += passed
            if f["left"] == 0:
                _end(f, span, span["ts"], made, cells)


@inner
def take(f: Row, carry: Array, link: Row, span: Row, src: Array, at: int, made: Rows, cells: Array) -> None:
    """Take one span (data, or a hole: all unknown); a message that ends in a hole gets end_ns = 0."""
    _known(f, carry, link, span, src, at, made, cells)
    skip = span["skip"]
    while skip > 0 and f["phase"] != LOST:
        if f["phase"] == BODY:
            passed = min(f["left"], skip)
            f["left"] -= passed
            skip -= passed
            if f["left"] == 0:
                _end(f, span, i64(0) if span["kind"] == HOLE else span["ts"], made, cells)
        elif (
            f["phase"] == SIZE and span["kind"] != HOLE and skip >= SIZE_BYTES - f["got"] and f["synced"] == 1
        ):
            skip -= SIZE_BYTES - f["got"]
            _start(f, span)
            f["cut"] = 1
            _sized(f, i64(f["nbytes"]), span, made, cells)
        else:
            f["phase"] = LOST
    if f["phase"] == LOST:
        f["got"] = 0


@inner
def close(f: Row, span: Row, made: Rows, cells: Array) -> None:
    """End a direction: a message in progress is emitted with end_ns = 0."""
    if f["phase"] == BODY:
        _end(f, span, i64(0), made, cells)
    f["phase"] = LOST
    f["got"] = 0
    f["synced"] = 0
