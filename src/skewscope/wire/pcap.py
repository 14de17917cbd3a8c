"""Classic pcap: file header and record headers. Sans-IO: bytes in, record columns out.

Format: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html. Both byte orders, micro- and
nanosecond magic numbers, and the "modified" variant with longer record headers.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from skewscope.core.tables import Array
from skewscope.wire.formats import MAX_CAPTURED, PCAP_MAGICS, link_type
from skewscope.wire.jit import inlined, njit
from skewscope.wire.load import Bytes, be32, bytes_of, le32, prefetch
from skewscope.wire.records import Interface, Rows, Walk

HEADER_BYTES = 24
AHEAD_BYTES = 1024
"""How far ahead of a record header memory is asked for: where the next one lies only this one tells."""


@dataclass(frozen=True)
class PcapHeader:
    """What the file header says; `record_bytes` is the length of each record's own header."""

    big_endian: bool
    unit_ns: int
    record_bytes: int
    snap_length: int
    link_type: int


def parse_header(data: bytes) -> PcapHeader | None:
    """Return the header of a classic pcap file, or None where these bytes are none."""
    if len(data) < HEADER_BYTES or data[:4] not in PCAP_MAGICS:
        return None
    variant = PCAP_MAGICS[data[:4]]
    snap, link = struct.unpack(variant.order + "16xII", data[:HEADER_BYTES])
    return PcapHeader(variant.order == ">", variant.unit_ns, variant.record_bytes, snap, link_type(link))


@inlined
def u32(data: Bytes, at: int, big: bool) -> int:
    """Return the 32-bit unsigned integer at an offset, in either byte order."""
    return be32(data, at) if big else le32(data, at)


@njit
def walk_records(
    buf: Array,
    start: int,
    big: bool,
    unit_ns: int,
    record_bytes: int,
    ts: Array,
    at: Array,
    captured: Array,
    wire: Array,
) -> tuple[int, int, int]:
    """Fill the record columns from a buffer with a record header at `start`.

    Returns (records, offset behind the last whole record, damage): damage is 1 where a record's
    length is impossible, and then nothing behind it can be trusted.
    """
    data, size = bytes_of(buf), len(buf)
    pos = start
    n = 0
    while n < len(ts) and pos + record_bytes <= size:
        prefetch(data, pos + AHEAD_BYTES)
        length = u32(data, pos + 8, big)
        if length > MAX_CAPTURED:
            return n, pos, 1
        if pos + record_bytes + length > size:
            break
        ts[n] = u32(data, pos, big) * 1_000_000_000 + u32(data, pos + 4, big) * unit_ns
        at[n] = pos + record_bytes
        captured[n] = length
        wire[n] = u32(data, pos + 12, big)
        pos += record_bytes + length
        n += 1
    return n, pos, 0


class PcapReader:
    """Reads the records behind a file header: `records.Reader` for classic pcap."""

    kind = "pcap"

    def __init__(self, header: PcapHeader) -> None:
        self.header = header
        self.interfaces = [Interface(0, "", header.link_type, header.snap_length)]
        self._frames = 0

    def walk(self, buf: Array, start: int, rows: Rows, limit: int) -> Walk:
        """Fill at most `limit` rows from the buffer."""
        h, columns = self.header, (rows.ts, rows.at, rows.captured, rows.wire)
        n, end, damage = walk_records(
            buf, start, h.big_endian, h.unit_ns, h.record_bytes, *(c[:limit] for c in columns)
        )
        rows.frame[:n] = np.arange(self._frames + 1, self._frames + n + 1)
        self._frames += n
        return Walk(n, end, 0, f"record {self._frames + 1} has an impossible length" if damage else "")

    def save(self) -> int:
        """Return the number of frames so far, which is all the state there is."""
        return self._frames

    def restore(self, state: int) -> None:
        """Go back to a saved state."""
        self._frames = state

    def notes(self) -> list[str]:
        """Return nothing: a classic pcap file says nothing about itself."""
        return []
