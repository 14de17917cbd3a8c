"""HTTP/1.1 lines: start lines, the three headers that matter, chunk sizes (RFC 9112, 3, 4, 5, 7.1)."""

from __future__ import annotations

import numpy as np

from skewscope.core.tables import Array
from skewscope.wire.jit import inner, njit
from skewscope.wire.layout import CARRY, TEXT_BYTES, TEXT_CUTS, Out, Row, i64

LINE = CARRY // 2
"""Bytes kept of a line; the other half of the carry row keeps the request target."""

NOTHING, REQUEST, RESPONSE, CHUNK = 0, 1, 2, 3
GET, POST, OTHER_METHOD = 1, 2, 3
ASKED_OTHER, ASKED_HEAD, ASKED_CONNECT = 0, 1, 2
MAX_CHUNK_DIGITS = 8
MAX_LENGTH_DIGITS = 15


def _word(text: bytes) -> Array:
    return np.frombuffer(text, np.uint8)


_VERSION = _word(b"http/1.")
_GET = _word(b"get ")
_POST = _word(b"post ")
_HEAD = _word(b"head ")
_CONNECT = _word(b"connect ")
_PUT = _word(b"put ")
_DELETE = _word(b"delete ")
_OPTIONS = _word(b"options ")
_PATCH = _word(b"patch ")
_TRACE = _word(b"trace ")
_CONTENT_LENGTH = _word(b"content-length:")
_CONTENT_TYPE = _word(b"content-type:")
_TRANSFER_ENCODING = _word(b"transfer-encoding:")
_EVENT_STREAM = _word(b"text/event-stream")
_CHUNKED = _word(b"chunked")
_UPGRADE = _word(b"upgrade:")
_H2C = _word(b"h2c")


@inner
def _starts(src: Array, at: int, n: int, word: Array) -> bool:
    """Tell whether the n bytes at `at` start with a lower-case word, in either case."""
    if n < len(word):
        return False
    for k in range(len(word)):
        c = src[at + k]
        if 65 <= c <= 90:
            c += 32
        if c != word[k]:
            return False
    return True


@inner
def _method(src: Array, at: int, n: int) -> tuple[int, int, int]:
    """Return (method, ask code, bytes up to the target) of a request line; method 0 if it is none."""
    if n < 4 or src[at] < 65 or src[at] > 90:
        return 0, 0, 0
    if _starts(src, at, n, _POST):
        return POST, ASKED_OTHER, 5
    if _starts(src, at, n, _GET):
        return GET, ASKED_OTHER, 4
    if _starts(src, at, n, _HEAD):
        return OTHER_METHOD, ASKED_HEAD, 5
    if _starts(src, at, n, _CONNECT):
        return OTHER_METHOD, ASKED_CONNECT, 8
    if _starts(src, at, n, _PUT):
        return OTHER_METHOD, ASKED_OTHER, 4
    if _starts(src, at, n, _DELETE):
        return OTHER_METHOD, ASKED_OTHER, 7
    if _starts(src, at, n, _OPTIONS):
        return OTHER_METHOD, ASKED_OTHER, 8
    if _starts(src, at, n, _PATCH) or _starts(src, at, n, _TRACE):
        return OTHER_METHOD, ASKED_OTHER, 6
    return 0, 0, 0


@inner
def _hex(c: int) -> int:
    """Return the value of a hexadecimal digit, -1 if it is none."""
    if 48 <= c <= 57:
        return c - 48
    if 97 <= c <= 102:
        return c - 87
    if 65 <= c <= 70:
        return c - 55
    return -1


@njit
def looks_like(src: Array, at: int, n: int) -> int:
    """Tell what a segment start of n known bytes is: REQUEST, RESPONSE, CHUNK (size line) or NOTHING."""
    if n < 3:
        return NOTHING
    if src[at] == 72 and _starts(src, at, n, _VERSION):
        return RESPONSE
    if _method(src, at, n)[0] > 0:
        return REQUEST
    k = 0
    while k < min(n, MAX_CHUNK_DIGITS + 1) and _hex(i64(src[at + k])) >= 0:
        k += 1
    if k == 0 or k > MAX_CHUNK_DIGITS or k + 1 >= n or src[at + k] != 13 or src[at + k + 1] != 10:
        return NOTHING
    if src[at] == 48 and (k > 1 or n != 5):  # the last chunk comes alone, others have no leading zero
        return NOTHING
    return CHUNK


@njit
def start_line(f: Row, line: Array, n: int, whole: int) -> bool:
    """Parse a status or request line of n bytes into the framer row; False if it is neither.

    The request's ask code goes to f["left"], its path to the second half of the carry row. `whole`
    0: the line was cut off behind n bytes.
    """
    f["length"] = -1
    f["chunked"] = 0
    f["upgrade"] = 0
    f["streaming"] = 0
    f["target_bytes"] = 0
    f["method"] = 0
    f["status"] = 0
    if _starts(line, i64(0), n, _VERSION):
        f["response"] = 1
        if n < 12:
            return False
        status = i64(0)
        for k in range(9, 12):
            if line[k] < 48 or line[k] > 57:
                return False
            status = 10 * status + line[k] - 48
        f["status"] = status
        return status >= 100
    method, ask, at = _method(line, i64(0), n)
    if method == 0:
        return False
    f["response"] = 0
    f["streaming"] = 2
    f["method"] = method
    f["left"] = ask
    _keep_target(f, line, at, n)
    return True


@inner
def _keep_target(f: Row, line: Array, at: int, n: int) -> None:
    """Copy the path of the target at `at`; none where it is cut off or not a path."""
    if at < n and line[at] != 47 and line[at] != 42:  # absolute form: the path starts at the third slash
        slashes = 0
        while at < n and line[at] != 32:
            slashes += line[at] == 47
            if slashes == 3:
                break
            at += 1
    if at >= n or (line[at] != 47 and line[at] != 42):
        return
    k = at
    while k < n and line[k] != 32 and line[k] != 63:
        line[LINE + k - at] = line[k]
        k += 1
    if k < n:
        f["target_bytes"] = k - at


@inner
def put_target(carry: Array, n: int, row: int, out: Out) -> None:
    """Copy the kept target to the output; the row's target holds 1 + its index until it is named."""
    at = out.cells[TEXT_BYTES]
    cut = out.cells[TEXT_CUTS]
    for k in range(n):
        out.text[at + k] = carry[LINE + k]
    out.cuts[cut, 0] = at
    out.cuts[cut, 1] = at + n
    out.cells[TEXT_BYTES] = at + n
    out.cells[TEXT_CUTS] = cut + 1
    out.http[row]["target"] = cut + 1


@inner
def _value_at(line: Array, at: int, n: int) -> int:
    while at < n and (line[at] == 32 or line[at] == 9):
        at += 1
    return at


@njit
def header(f: Row, line: Array, n: int, whole: int) -> None:
    """Note a header line of n bytes; of a line that was cut off only the content type counts."""
    c = line[0] | 32
    if c == 99 and _starts(line, i64(0), n, _CONTENT_TYPE):
        at = _value_at(line, len(_CONTENT_TYPE), n)
        if _starts(line, at, n - at, _EVENT_STREAM):
            f["streaming"] = 1
        elif whole == 1 or n - at >= len(_EVENT_STREAM):
            f["streaming"] = 2
    elif c == 99 and whole == 1 and _starts(line, i64(0), n, _CONTENT_LENGTH):
        f["length"] = _decimal(line, _value_at(line, len(_CONTENT_LENGTH), n), n)
    elif c == 116 and whole == 1 and _starts(line, i64(0), n, _TRANSFER_ENCODING):
        for at in range(len(_TRANSFER_ENCODING), n):
            if _starts(line, at, n - at, _CHUNKED):
                f["chunked"] = 1
    elif c == 117 and whole == 1 and _starts(line, i64(0), n, _UPGRADE):
        at = _value_at(line, len(_UPGRADE), n)
        f["upgrade"] = 1 if _starts(line, at, n - at, _H2C) else 0


@inner
def _decimal(line: Array, at: int, n: int) -> int:
    """Return the decimal number at `at`, -1 if there is none or it is absurd."""
    first = at
    value = i64(0)
    while at < n and 48 <= line[at] <= 57:
        value = 10 * value + line[at] - 48
        at += 1
        if at - first > MAX_LENGTH_DIGITS:
            return -1
    return value if at > first else -1


@njit
def chunk_size(line: Array, n: int) -> int:
    """Return the size in a chunk-size line of n bytes, extensions ignored; -1 if it is none."""
    k = 0
    value = i64(0)
    while k < n and _hex(i64(line[k])) >= 0:
        if k == MAX_CHUNK_DIGITS:
            return -1
        value = 16 * value + _hex(i64(line[k]))
        k += 1
    if k == 0 or (k < n and line[k] != 59 and line[k] != 32 and line[k] != 9):
        return -1
    return value
