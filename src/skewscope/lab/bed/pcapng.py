"""From what tcpdump wrote at a tap to the pcapng file of a case: cut to length, one interface."""

from __future__ import annotations

import numpy as np

from skewscope.core.tables import Array
from skewscope.wire.jit import njit
from skewscope.wire.load import bytes_of, le32
from skewscope.wire.pcap import HEADER_BYTES
from skewscope.wire.pcapng_write import PcapngWriter

NANOSECONDS = b"\x4d\x3c\xb2\xa1"
RECORD_BYTES = 16
BLOCK_BYTES = 32
"""An enhanced packet block without its frame: 28 bytes before, 4 behind."""
GROWTH_BYTES = BLOCK_BYTES - RECORD_BYTES + 3


def from_pcap(data: bytes, port: str, end_ns: int, snap: int, dropped: int = 0) -> tuple[bytes, int]:
    """Return a capture as pcapng up to `end_ns`, and its first time stamp (ns; 0 where no frame is left).

    The captures of a bed end at slightly different times; cut, they end together: frames up to the last one
    in time are kept. `port` becomes the interface's name, `snap` (bytes, 0 = whole frames) its snap length,
    `dropped` its count of frames that the capture lost. Raises ValueError where `data` is not classic pcap,
    little-endian, in nanoseconds, which is what the bed writes.
    """
    if data[:4] != NANOSECONDS or len(data) < HEADER_BYTES:
        raise ValueError("not a capture of this bed")
    raw = np.frombuffer(data, np.uint8)
    count, until, first_ns, last_ns = _extent(raw, end_ns)
    writer = PcapngWriter()
    head = writer.header("skewscope lab bed") + writer.interface(port, snap_length=snap)
    blocks = np.zeros(until + GROWTH_BYTES * count, np.uint8)
    used = _blocks(raw, until, snap or 1 << 31, blocks)
    tail = writer.statistics(0, last_ns or end_ns, dropped)
    return head + blocks[:used].tobytes() + tail, first_ns


@njit
def _extent(raw: Array, end_ns: int) -> tuple[int, int, int, int]:
    """Return frames, their end in `raw`, and first and last time (ns) of what is in time and complete."""
    data = bytes_of(raw)
    count, seen, until, first_ns, last_ns, at = 0, 0, HEADER_BYTES, 0, 0, HEADER_BYTES
    while at + RECORD_BYTES <= len(raw):
        ts_ns = le32(data, at) * 1_000_000_000 + le32(data, at + 4)
        at += RECORD_BYTES + le32(data, at + 8)
        seen += 1
        if at <= len(raw) and ts_ns <= end_ns:
            count, until, last_ns = seen, at, ts_ns
            if first_ns == 0 or ts_ns < first_ns:
                first_ns = ts_ns
    return count, until, first_ns, last_ns


@njit
def _put32(out: Array, at: int, value: int) -> None:
    for k in range(4):
        out[at + k] = (value >> (8 * k)) & 0xFF


@njit
def _blocks(raw: Array, until: int, snap: int, out: Array) -> int:
    """Write an enhanced packet block for each frame; return the bytes written. Times are in ns."""
    data = bytes_of(raw)
    at, to = HEADER_BYTES, 0
    while at < until:
        ts_ns = le32(data, at) * 1_000_000_000 + le32(data, at + 4)
        captured, wire = le32(data, at + 8), le32(data, at + 12)
        kept = captured if captured < snap else snap
        size = BLOCK_BYTES + (kept + 3) // 4 * 4
        _put32(out, to, 6)
        _put32(out, to + 4, size)
        _put32(out, to + 8, 0)
        _put32(out, to + 12, ts_ns >> 32)
        _put32(out, to + 16, ts_ns & 0xFFFFFFFF)
        _put32(out, to + 20, kept)
        _put32(out, to + 24, wire)
        at += RECORD_BYTES
        out[to + 28 : to + 28 + kept] = raw[at : at + kept]
        _put32(out, to + size - 4, size)
        at += captured
        to += size
    return to
