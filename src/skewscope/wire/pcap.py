"""Classic pcap: file header and record headers. Sans-IO: bytes in, record offsets out.

Format: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html. Both byte orders, micro- and
nanosecond magic numbers.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from skewscope.core.tables import Array
from skewscope.wire.jit import inner, njit

HEADER_BYTES = 24
RECORD_BYTES = 16
MAX_CAPTURED = 262_144
"""Longest record that libpcap itself accepts (MAXIMUM_SNAPLEN): longer is damage, not data."""

_MAGIC = {
    b"\xd4\xc3\xb2\xa1": ("<", 1_000),
    b"\xa1\xb2\xc3\xd4": (">", 1_000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}


@dataclass(frozen=True)
class PcapHeader:
    """What the file header says: byte order, nanoseconds per fraction unit, snap length, link type."""

    big_endian: bool
    unit_ns: int
    snap_length: int
    link_type: int


def has_magic(data: bytes) -> bool:
    """Return whether these bytes begin like a classic pcap file."""
    return data[:4] in _MAGIC


def parse_header(data: bytes) -> PcapHeader | None:
    """Return the header of a classic pcap file, or None where these bytes are none."""
    if len(data) < HEADER_BYTES or data[:4] not in _MAGIC:
        return None
    order, unit = _MAGIC[data[:4]]
    snap, link = struct.unpack(order + "16xII", data[:HEADER_BYTES])
    return PcapHeader(order == ">", unit, snap, link & 0x0FFFFFFF)


@inner
def _u32(buf: Array, at: int, big: bool) -> int:
    b0, b1, b2, b3 = np.int64(buf[at]), np.int64(buf[at + 1]), np.int64(buf[at + 2]), np.int64(buf[at + 3])
    if big:
        return int((b0 << 24) | (b1 << 16) | (b2 << 8) | b3)
    return int((b3 << 24) | (b2 << 16) | (b1 << 8) | b0)


@njit
def walk_records(
    buf: Array, big: bool, unit_ns: int, ts: Array, at: Array, captured: Array, wire: Array
) -> tuple[int, int, int]:
    """Fill the record columns from a buffer that starts at a record header.

    Returns (records, bytes consumed, damage): damage is 1 where a record's length is impossible,
    and then nothing behind it can be trusted.
    """
    size = len(buf)
    pos = 0
    n = 0
    while n < len(ts) and pos + 16 <= size:
        length = _u32(buf, pos + 8, big)
        if length > MAX_CAPTURED:
            return n, pos, 1
        if pos + 16 + length > size:
            break
        ts[n] = _u32(buf, pos, big) * 1_000_000_000 + _u32(buf, pos + 4, big) * unit_ns
        at[n] = pos + 16
        captured[n] = length
        wire[n] = _u32(buf, pos + 12, big)
        pos += 16 + length
        n += 1
    return n, pos, 0
