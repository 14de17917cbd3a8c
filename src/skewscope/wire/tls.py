"""TLS records: sizes and times only (RFC 8446, 5.1). Headers are in clear in every TLS version.

Phases: LOST -> HEADER where a segment starts with a plausible header; HEADER -> BODY when its five
bytes are there and plausible, else LOST; BODY -> HEADER when the record has passed, known or not.
"""

from __future__ import annotations

from skewscope.core.tables import Array
from skewscope.wire.jit import inner
from skewscope.wire.layout import HOLE, RECORD_ROWS, Row, Rows, i64

HEADER_BYTES = 5
MAX_RECORD = 16384 + 256
CHANGE_CIPHER, ALERT, HANDSHAKE, APPLICATION = 20, 21, 22, 23
MAX_ALERT = 512
"""A padded and authenticated alert stays far below this."""

LOST, HEADER, BODY = 0, 1, 2


@inner
def plausible(src: Array, at: int) -> bool:
    """Tell whether the five bytes at `at` can be a record header of TLS 1.0 to 1.3."""
    kind = src[at]
    if kind < CHANGE_CIPHER or kind > APPLICATION or src[at + 1] != 3 or src[at + 2] < 1 or src[at + 2] > 4:
        return False
    length = i64(src[at + 3]) << 8 | i64(src[at + 4])
    if kind == CHANGE_CIPHER:
        return length == 1
    if kind == ALERT:
        return 2 <= length <= MAX_ALERT
    if kind == HANDSHAKE and length < 4:
        return False
    return length <= MAX_RECORD


@inner
def looks_like(src: Array, at: int, size: int) -> bool:
    """Tell whether a segment start is a record header."""
    return size >= HEADER_BYTES and plausible(src, at)


@inner
def _emit(f: Row, span: Row, records: Rows, cells: Array) -> None:
    n = cells[RECORD_ROWS]
    cells[RECORD_ROWS] = n + 1
    row = records[n]
    row["ts_ns"] = span["ts"]
    row["tap"] = span["tap"]
    row["frame"] = span["frame"]
    row["flow"] = span["flow"]
    row["way"] = span["way"]
    row["src"] = span["src"]
    row["dst"] = span["dst"]
    row["kind"] = f["kind"]
    row["nbytes"] = f["nbytes"]


@inner
def _pass_body(f: Row, span: Row, size: int, records: Rows, cells: Array) -> int:
    """Let up to `size` body bytes pass; returns the bytes taken. Without its end seen, no row."""
    take: int = min(f["left"], size)
    f["left"] -= take
    if f["left"] == 0:
        f["phase"] = HEADER
        f["got"] = 0
        if span["kind"] != HOLE:
            _emit(f, span, records, cells)
    return take


@inner
def _begin(f: Row, carry: Array, link: Row, span: Row, records: Rows, cells: Array) -> None:
    """Read the header in the carry row."""
    f["got"] = 0
    if not plausible(carry, i64(0)):
        f["phase"] = LOST
        link["misses"] = min(link["misses"] + 1, 250)
        return
    link["confirms"] = min(link["confirms"] + 1, 250)
    f["kind"] = carry[0]
    f["left"] = i64(carry[3]) << 8 | i64(carry[4])
    f["nbytes"] = f["left"]
    f["phase"] = BODY
    if f["left"] == 0:
        _pass_body(f, span, i64(0), records, cells)


@inner
def take(
    f: Row, carry: Array, link: Row, span: Row, src: Array, at: int, records: Rows, cells: Array
) -> None:
    """Take one span (data, or a hole: all unknown)."""
    size = span["size"]
    k = i64(0)
    while k < size:
        if f["phase"] == LOST:
            if k > 0 or span["head"] == 0 or not looks_like(src, at, size):
                break
            f["phase"] = HEADER
            f["got"] = 0
        if f["phase"] == HEADER:
            while f["got"] < HEADER_BYTES and k < size:
                carry[f["got"]] = src[at + k]
                f["got"] += 1
                k += 1
            if f["got"] == HEADER_BYTES:
                _begin(f, carry, link, span, records, cells)
        else:
            k += _pass_body(f, span, size - k, records, cells)
    skip = span["skip"]
    while skip > 0 and f["phase"] == BODY:
        skip -= _pass_body(f, span, skip, records, cells)
    if skip > 0:
        f["phase"] = LOST
        f["got"] = 0
