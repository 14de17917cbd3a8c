"""HTTP/2 header blocks (HPACK, RFC 7541) to the few fields that rows need; bounded and lenient.

Python, as blocks come once or twice a request. A table that was not followed from the connection's
start lacks its older entries only: what stands at a place that was not seen is unknown, and is never
guessed. The same holds for entries dropped to keep the tables small, as the newest come first.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from functools import lru_cache

from hpack.exceptions import HPACKError
from hpack.hpack import decode_integer
from hpack.huffman_table import decode_huffman
from hpack.table import HeaderTable

from skewscope.wire.grpc import HTTP_STATUS
from skewscope.wire.http1_words import GET, LINE, OTHER_METHOD, POST
from skewscope.wire.http2_words import EVENTS, MESSAGES, OTHER
from skewscope.wire.http_rows import REQUEST_HEAD, RESPONSE_HEAD

MAX_TABLE_BYTES = 16384
"""Of one dynamic table; four times the default of SETTINGS_HEADER_TABLE_SIZE."""
MAX_TOTAL_BYTES = 16 << 20
"""Of all dynamic tables, and of all unfinished header blocks."""
MAX_FIELDS = 256
"""Of one block; what stands behind them is not read."""
MAX_VALUE_BYTES = 1024
"""Longer values are not decoded."""

Field = tuple[bytes, bytes]
UNKNOWN: Field = (b"", b"")
"""A field whose place in the table was not seen. No field has an empty name (RFC 9113, 8.2.1)."""

_METHODS = {b"GET": GET, b"POST": POST}
_CODED = 0x80


@dataclass
class Head:
    """What a header block says. kind: a row kind of the `http` table, 0 = trailers or not known."""

    kind: int = 0
    status: int = 0
    method: int = 0
    streaming: int = 0
    length: int = -1
    content: int = OTHER
    end_status: int = 0
    path: bytes = b""


class _Text(bytes):
    """A string as it was sent, Huffman-coded or not: most are never looked at."""

    coded: bool


def _string(data: bytes, at: int) -> tuple[bytes, int]:
    """Return the string literal at `at` (RFC 7541, 5.2) and where it ends; raises HPACKError if cut off."""
    if at >= len(data):
        raise HPACKError("cut off")
    size, used = decode_integer(data[at : at + 12], 7)
    end = at + used + size
    if end > len(data):
        raise HPACKError("cut off")
    text = _Text(data[at + used : end])
    text.coded = bool(data[at] & _CODED)
    return text, end


def _plain(text: bytes) -> bytes:
    """Return a string decoded; empty where it is too long or wrongly coded."""
    if len(text) > MAX_VALUE_BYTES:
        return b""
    return _decoded(bytes(text)) if isinstance(text, _Text) and text.coded else bytes(text)


@lru_cache(maxsize=4096)
def _decoded(text: bytes) -> bytes:
    """Return a Huffman-coded string decoded; the same few come with every request."""
    try:
        return bytes(decode_huffman(text))
    except HPACKError:
        return b""


def _get(table: HeaderTable, index: int) -> Field:
    if index == 0:
        raise HPACKError("index 0")
    try:
        return table.get_by_index(index)
    except HPACKError:
        return UNKNOWN


def _field(table: HeaderTable, data: bytes, at: int) -> tuple[Field | None, int]:
    """Decode the field representation at `at` (RFC 7541, 6); None is a table size update."""
    first = data[at]
    some = data[at : at + 12]
    if first & 0x80:
        index, used = decode_integer(some, 7)
        return _get(table, index), at + used
    if first & 0xE0 == 0x20:
        size, used = decode_integer(some, 5)
        table.maxsize = min(size, MAX_TABLE_BYTES)
        return None, at + used
    keep = bool(first & 0x40)
    index, used = decode_integer(some, 6 if keep else 4)
    at += used
    if index:
        name = _get(table, index)[0]
    else:
        name, at = _string(data, at)
    value, at = _string(data, at)
    if keep:
        table.add(name, value)
    return (name, value), at


def fields(table: HeaderTable, block: bytes) -> tuple[list[Field], bool]:
    """Decode a block, in order; False where it is damaged or too long, and the table is out of step then."""
    found: list[Field] = []
    at = 0
    try:
        while at < len(block) and len(found) < MAX_FIELDS:
            one, at = _field(table, block, at)
            if one is not None:
                found.append(one)
    except HPACKError:
        return found, False
    return found, at >= len(block)


def head(found: list[Field]) -> Head:
    """Return what the fields amount to; the last of a name counts."""
    out = Head()
    typed = False
    for raw_name, raw in found:
        name = _plain(raw_name)
        if name == b":method":
            out.kind = REQUEST_HEAD
            out.streaming = 2
            out.method = _METHODS.get(_plain(raw), OTHER_METHOD)
        elif name == b":path":
            path = _plain(raw).partition(b"?")[0]
            out.path = path if len(path) <= LINE else b""
        elif name == b":status":
            out.kind = RESPONSE_HEAD
            out.status = _number(raw, 3)
        elif name == b"content-type":
            typed = True
            out.content, out.streaming = _content(_plain(raw))
        elif name == b"content-length":
            out.length = _number(raw, 15)
        elif name == b"grpc-status":
            out.end_status = HTTP_STATUS.get(_number(raw, 3), 500)
    whole = all(name for name, _ in found)
    if out.kind == REQUEST_HEAD:
        out.streaming = 2
    elif not typed:
        out.streaming = 2 if whole else 0
    return out


def _content(value: bytes) -> tuple[int, int]:
    """Return what a content type says of the DATA, and the `streaming` column."""
    kind = value.lower()
    if kind.startswith(b"text/event-stream"):
        return EVENTS, 1
    if kind.startswith(b"application/grpc") and not kind.startswith(b"application/grpc-web"):
        return MESSAGES, 1
    return OTHER, 2 if value else 0


def _number(raw: bytes, digits: int) -> int:
    """Return a decimal value, 0 where it is none or absurd."""
    text = _plain(raw)
    return int(text) if text.isdigit() and len(text) <= digits else 0


@dataclass
class HeadReader:
    """Collects the pieces of header blocks and decodes them, with one table per direction (`stream`)."""

    _blocks: dict[int, bytearray] = field(default_factory=dict)
    _pending: int = 0
    _tables: OrderedDict[int, tuple[int, HeaderTable]] = field(default_factory=OrderedDict)
    _held: int = 0

    def add(self, stream: int, piece: bytes, first: bool) -> None:
        """Append to the block under way in a direction; `first` begins a new one."""
        if first:
            self._forget(stream)
        elif stream not in self._blocks:
            return
        if self._pending + len(piece) > MAX_TOTAL_BYTES:
            self._forget(stream)
            return
        self._blocks.setdefault(stream, bytearray()).extend(piece)
        self._pending += len(piece)

    def read(self, stream: int, epoch: int, nbytes: int, cut: bool) -> Head:
        """Decode the block of that many bytes that is complete, or cut off behind them.

        epoch: another number than last time means that blocks of this direction were missed.
        """
        block = self._forget(stream)
        was, table = self._tables.pop(stream, (epoch, HeaderTable()))
        self._held -= _bytes(table)
        if was != epoch:
            table = HeaderTable()
        found, whole = fields(table, block)
        if cut or not whole or len(block) != nbytes:
            table = HeaderTable()
        self._tables[stream] = (epoch, table)
        self._held += _bytes(table)
        while self._held > MAX_TOTAL_BYTES:
            self._held -= _bytes(self._tables.popitem(last=False)[1][1])
        return head(found)

    def _forget(self, stream: int) -> bytes:
        block = bytes(self._blocks.pop(stream, b""))
        self._pending -= len(block)
        return block


def _bytes(table: HeaderTable) -> int:
    """Return what a table is charged: its size by RFC 7541, 4.1, and the table itself."""
    return 512 + int(table._current_size)
