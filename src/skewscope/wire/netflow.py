"""NetFlow v9 (RFC 3954) and IPFIX (RFC 7011) datagrams to rows of flow records.

Data can be read only with the template that the exporter sent before; templates are kept by exporter and
domain, the least recently used being dropped beyond MAX_TEMPLATES. Records of fixed length are read as
columns, the others one by one.
"""

from __future__ import annotations

import struct
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from skewscope.core.tables import Array

MAX_TEMPLATES = 4096
MAX_FIELDS = 256
MAX_DOMAINS = 1024
V9, IPFIX = 9, 10
VARIABLE = 0xFFFF
ENTERPRISE = 0x8000
SECOND_NS = 10**9
NTP_TO_UNIX = 2_208_988_800
"""Seconds from 1900 to 1970 (RFC 5905)."""

FLOW = np.dtype(
    [
        ("first_ns", "i8"), ("last_ns", "i8"),
        ("src_high", "u8"), ("src_low", "u8"), ("dst_high", "u8"), ("dst_low", "u8"),
        ("sport", "u2"), ("dport", "u2"), ("proto", "u1"), ("flags", "u1"), ("dscp", "u1"),
        ("packets", "f8"), ("nbytes", "f8"), ("sampling", "u4"), ("input", "u4"), ("timed", "u1"),
    ]
)  # fmt: skip
"""One flow record: times in ns, addresses as 128-bit keys, counts as exported."""

MAPPED = 0xFFFF00000000

_BYTES, _PACKETS, _PROTO, _TOS, _FLAGS, _SPORT, _SRC4, _INPUT, _DPORT, _DST4 = 1, 2, 4, 5, 6, 7, 8, 10, 11, 12
_LAST_UP, _FIRST_UP, _SRC6, _DST6 = 21, 22, 27, 28
_BYTES_TOTAL, _PACKETS_TOTAL, _DSCP = 85, 86, 195
_SAMPLING = (34, 50, 305)
_SECONDS, _MILLIS, _MICROS, _NANOS = (150, 151), (152, 153), (154, 155), (156, 157)
_SINCE_EXPORT = (158, 159)
_BOOT_MILLIS = 160
"""Information elements (IANA registry "IPFIX Information Elements"; NetFlow v9 shares the numbers)."""


class Field(NamedTuple):
    """A field of a template; `number` is 0 for those of enterprises."""

    number: int
    length: int


@dataclass
class Template:
    """What the records of a data set look like. `scopes` > 0: options, not flows."""

    fields: list[Field]
    scopes: int = 0

    @property
    def fixed_length(self) -> int:
        """Length of a record, 0 where it varies."""
        lengths = [f.length for f in self.fields]
        return 0 if VARIABLE in lengths else sum(lengths)

    @property
    def least_length(self) -> int:
        """Length below which no record can be."""
        return sum(1 if f.length == VARIABLE else f.length for f in self.fields)


class Header(NamedTuple):
    """The beginning of a datagram."""

    version: int
    export_ns: int
    boot_ns: int
    domain: int
    sequence: int
    at: int
    end: int


def header(data: bytes) -> Header | None:
    """Return the header, None where the datagram is neither NetFlow v9 nor IPFIX."""
    if len(data) < 16:
        return None
    version, second = struct.unpack_from(">HH", data)
    if version == IPFIX and 16 <= second <= len(data):
        seconds, sequence, domain = struct.unpack_from(">III", data, 4)
        return Header(IPFIX, seconds * SECOND_NS, 0, domain, sequence, 16, second)
    if version == V9 and len(data) >= 20:
        up_ms, seconds, sequence, domain = struct.unpack_from(">IIII", data, 4)
        export_ns = seconds * SECOND_NS
        return Header(V9, export_ns, export_ns - up_ms * 1_000_000, domain, sequence, 20, len(data))
    return None


def looks_right(data: bytes) -> bool:
    """Whether the sets of a datagram, the headers of which fit, fill it exactly."""
    head = header(data)
    if head is None:
        return False
    at = head.at
    while at + 4 <= head.end:
        number, length = struct.unpack_from(">HH", data, at)
        if length < 4 or at + length > head.end or (number > 3 and number < 256):
            return False
        at += length
    return at > head.at and head.end - at < 4 and len(data) - head.end < 4


def unsigned(raw: Array) -> Array:
    """Return big-endian numbers uint8 (n, width) as uint64 (n,); of more than 8 bytes the last 8 count."""
    out = np.zeros(len(raw), dtype=np.uint64)
    for k in range(max(raw.shape[1] - 8, 0), raw.shape[1]):
        out = (out << np.uint64(8)) | raw[:, k].astype(np.uint64)
    return out


@dataclass
class NetflowDecoder:
    """Templates and sampling rates of all exporters of a run, and what could not be read."""

    templates: OrderedDict[tuple[str, int, int, int], Template] = field(default_factory=OrderedDict)
    sampling: OrderedDict[tuple[str, int], int] = field(default_factory=OrderedDict)
    counts: Counter[str] = field(default_factory=Counter)

    def feed(self, data: bytes, exporter: str) -> Array:
        """Return the FLOW rows (n,) of a datagram; nothing is raised on bad bytes."""
        head = header(data)
        parts: list[Array] = []
        if head is None:
            self.counts["datagrams of another kind"] += 1
            return np.zeros(0, FLOW)
        at = head.at
        while at + 4 <= head.end:
            number, length = struct.unpack_from(">HH", data, at)
            if length < 4 or at + length > head.end:
                self.counts["damaged datagrams"] += 1
                break
            self._set(number, data[at + 4 : at + length], head, exporter, parts)
            at += length
        return np.concatenate(parts) if parts else np.zeros(0, FLOW)

    def _set(self, number: int, body: bytes, head: Header, exporter: str, parts: list[Array]) -> None:
        plain, options = (0, 1) if head.version == V9 else (2, 3)
        if number in {plain, options}:
            self._templates(body, head, exporter, number == options)
            return
        if number < 256:
            self.counts["sets of an unknown kind"] += 1
            return
        key = (exporter, head.version, head.domain, number)
        template = self.templates.get(key)
        if template is None:
            self.counts["data sets without their template"] += 1
            return
        self.templates.move_to_end(key)
        columns, count = _columns(template, body)
        if not count:
            return
        if template.scopes:
            self._options(columns, exporter, head.domain)
            return
        parts.append(self._rows(columns, count, head, exporter))

    def _templates(self, body: bytes, head: Header, exporter: str, options: bool) -> None:
        at = 0
        while at + 4 <= len(body):
            number, count = struct.unpack_from(">HH", body, at)
            at += 4
            scopes = 0
            if options:
                if at + 2 > len(body):
                    break
                (scopes,) = struct.unpack_from(">H", body, at)
                at += 2
                if head.version == V9:  # both are lengths in bytes there
                    count, scopes = (count + scopes) // 4, max(count // 4, 1)
            if number < 256 or count > MAX_FIELDS:
                if number:  # padding is of zeros
                    self.counts["damaged templates"] += 1
                return
            fields, at = _fields(body, at, count)
            if len(fields) < count:
                self.counts["damaged templates"] += 1
                return
            key = (exporter, head.version, head.domain, number)
            if count == 0:
                self.templates.pop(key, None)  # withdrawn (RFC 7011, 8.1)
                continue
            self.templates[key] = Template(fields, scopes)
            self.templates.move_to_end(key)
            if len(self.templates) > MAX_TEMPLATES:
                self.templates.popitem(last=False)
                self.counts["templates dropped for room"] += 1

    def _options(self, columns: dict[int, Array], exporter: str, domain: int) -> None:
        """Take the sampling rate from options; everything else in them is passed over."""
        for number in _SAMPLING:
            if number in columns:
                rate = int(unsigned(columns[number])[-1])
                if 0 < rate < 1 << 31:
                    self.sampling[exporter, domain] = rate
                    if len(self.sampling) > MAX_DOMAINS:
                        self.sampling.popitem(last=False)

    def _rows(self, columns: dict[int, Array], count: int, head: Header, exporter: str) -> Array:
        rows = np.zeros(count, FLOW)
        for name, numbers in (
            ("sport", (_SPORT,)), ("dport", (_DPORT,)), ("proto", (_PROTO,)), ("flags", (_FLAGS,)),
            ("input", (_INPUT,)), ("nbytes", (_BYTES, _BYTES_TOTAL)), ("packets", (_PACKETS, _PACKETS_TOTAL)),
        ):  # fmt: skip
            found = next((columns[n] for n in numbers if n in columns), None)
            if found is not None:
                rows[name] = unsigned(found)
        if _DSCP in columns:
            rows["dscp"] = unsigned(columns[_DSCP]) & np.uint64(63)
        elif _TOS in columns:
            rows["dscp"] = unsigned(columns[_TOS]) >> np.uint64(2)
        for side, four, six in (("src", _SRC4, _SRC6), ("dst", _DST4, _DST6)):
            if six in columns and columns[six].shape[1] == 16:
                rows[f"{side}_high"] = unsigned(columns[six][:, :8])
                rows[f"{side}_low"] = unsigned(columns[six][:, 8:])
            if four in columns:
                low = unsigned(columns[four])
                use = (low > 0) | (rows[f"{side}_low"] == 0)
                rows[f"{side}_high"][use] = 0
                rows[f"{side}_low"][use] = (low | np.uint64(MAPPED))[use]
        rows["sampling"] = self._rate(columns, exporter, head.domain)
        rows["timed"] = _times(rows, columns, head)
        return rows

    def _rate(self, columns: dict[int, Array], exporter: str, domain: int) -> Array | int:
        for number in _SAMPLING:
            if number in columns:
                return np.clip(unsigned(columns[number]), 1, 2**31)
        return self.sampling.get((exporter, domain), 1)


def _fields(body: bytes, at: int, count: int) -> tuple[list[Field], int]:
    """Read field descriptions; returns them and where they end."""
    fields: list[Field] = []
    while len(fields) < count and at + 4 <= len(body):
        number, length = struct.unpack_from(">HH", body, at)
        at += 4
        if number & ENTERPRISE:
            number, at = 0, at + 4
        fields.append(Field(number, length))
    return (fields if at <= len(body) else []), at


def _columns(template: Template, body: bytes) -> tuple[dict[int, Array], int]:
    """Return the fields of all records as uint8 (n, width) by number, and n."""
    size = template.fixed_length
    if size == 0:
        return _columns_of_variable(template, body)
    count = len(body) // size
    raw = np.frombuffer(body, np.uint8, count * size).reshape(count, size)
    out: dict[int, Array] = {}
    at = 0
    for number, length in template.fields:
        if number and length and number not in out:
            out[number] = raw[:, at : at + length]
        at += length
    return out, count


def _columns_of_variable(template: Template, body: bytes) -> tuple[dict[int, Array], int]:
    """Walk records that hold fields of variable length; those fields themselves are not kept."""
    kept: dict[int, list[bytes]] = {
        f.number: [] for f in template.fields if f.number and f.length != VARIABLE
    }
    at, count = 0, 0
    least = max(template.least_length, 1)
    while at + least <= len(body):
        begun = at
        record: dict[int, bytes] = {}
        for number, length in template.fields:
            if length == VARIABLE:
                length, at = _length(body, at)
            elif number and number not in record:
                record[number] = body[at : at + length]
            at += length
            if at > len(body):
                break
        if at > len(body) or at == begun:  # cut, or fields that are all empty: no end would come
            break
        for number, values in kept.items():
            values.append(record[number])
        count += 1
    arrays = {
        n: np.frombuffer(b"".join(v), np.uint8).reshape(count, -1) for n, v in kept.items() if v and v[0]
    }
    return arrays, count


def _length(body: bytes, at: int) -> tuple[int, int]:
    """Return a variable field's length and where it begins (RFC 7011, 7)."""
    if at >= len(body):
        return 1, at
    if body[at] < 255:
        return body[at], at + 1
    if at + 3 > len(body):
        return 3, at
    return struct.unpack_from(">H", body, at + 1)[0], at + 3


def _times(rows: Array, columns: dict[int, Array], head: Header) -> Array | int:
    """Fill in first and last time; returns where they are known."""
    for numbers, scale in ((_MILLIS, 1_000_000), (_SECONDS, SECOND_NS)):
        if all(n in columns for n in numbers):
            for name, number in zip(("first_ns", "last_ns"), numbers, strict=True):
                value = np.minimum(unsigned(columns[number]), np.uint64((1 << 62) // scale))
                rows[name] = value.astype(np.int64) * scale
            return 1
    for numbers in (_MICROS, _NANOS):
        if all(n in columns and columns[n].shape[1] == 8 for n in numbers):
            for name, number in zip(("first_ns", "last_ns"), numbers, strict=True):
                rows[name] = _ntp(unsigned(columns[number]))
            return 1
    if all(n in columns for n in _SINCE_EXPORT):
        for name, number in zip(("first_ns", "last_ns"), _SINCE_EXPORT, strict=True):
            back = np.minimum(unsigned(columns[number]), np.uint64(1 << 32)).astype(np.int64) * 1000
            rows[name] = head.export_ns - back
        return 1
    boot = np.full(len(rows), head.boot_ns, np.int64)
    if _BOOT_MILLIS in columns:
        boot = np.minimum(unsigned(columns[_BOOT_MILLIS]), np.uint64(1 << 43)).astype(np.int64) * 1_000_000
    known = head.version == V9 or _BOOT_MILLIS in columns
    if known and _FIRST_UP in columns and _LAST_UP in columns:
        for name, number in (("first_ns", _FIRST_UP), ("last_ns", _LAST_UP)):
            up = np.minimum(unsigned(columns[number]), np.uint64(0xFFFFFFFF)).astype(np.int64)
            rows[name] = boot + up * 1_000_000
        return 1
    rows["first_ns"] = rows["last_ns"] = head.export_ns
    return 0


def _ntp(value: Array) -> Array:
    """Return ns since 1970 of NTP times uint64 (n,) (RFC 7011, 6.1.9)."""
    seconds = (value >> np.uint64(32)).astype(np.int64) - NTP_TO_UNIX
    fraction = (value & np.uint64(0xFFFFFFFF)) * np.uint64(SECOND_NS) >> np.uint64(32)
    return seconds * SECOND_NS + fraction.astype(np.int64)
