"""Recorded captures cut at the front, or under other addresses, ports and times.

For `tools.score_baseline`, and for the tests that no rule knows the recorded addresses, ports or times.
"""

import gzip
import ipaddress
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from skewscope.core.tables import Array
from skewscope.wire.pcap import HEADER_BYTES, parse_header, walk_records

PORT_SHIFT = 1_234
RECORD_BYTES = 16


def records(data: bytes) -> tuple[Array, Array]:
    """Return (offset of each frame in the file, its time in ns)."""
    header = parse_header(data[:HEADER_BYTES])
    assert header is not None
    body = np.frombuffer(data, dtype=np.uint8)[HEADER_BYTES:]
    most = len(body) // RECORD_BYTES
    ts, at, captured, wire = (np.empty(most, dtype=np.int64) for _ in range(4))
    order = header.big_endian, header.unit_ns, header.record_bytes
    n, _, _ = walk_records(body, 0, *order, ts, at, captured, wire)
    return at[:n] + HEADER_BYTES, ts[:n].copy()


def rewritten(
    source: Path,
    target: Path,
    addresses: Mapping[str, str],
    *,
    shift_ns: int = 0,
    stretch: float = 1.0,
    from_ns: int = 0,
) -> None:
    """Write a capture anew with other addresses, all ports moved, and other times.

    source: little-endian classic pcap with nanoseconds, gzip, untagged IPv4 without options.
    stretch: factor on the times since the first packet. from_ns: what came before is left out.
    """
    data = gzip.decompress(source.read_bytes())
    raw = np.frombuffer(data, dtype=np.uint8).copy()
    at, ts = records(data)
    new = ts[0] + ((ts - ts[0]) * stretch).astype(np.int64) + shift_ns
    _put(raw, at - RECORD_BYTES, new // 1_000_000_000)
    _put(raw, at - RECORD_BYTES + 4, new % 1_000_000_000)
    ip = at[(raw[at + 12] == 8) & (raw[at + 13] == 0)]
    numbers = {int(ipaddress.ip_address(a)): int(ipaddress.ip_address(b)) for a, b in addresses.items()}
    for offset in (26, 30):
        old = sum(raw[ip + offset + i].astype(np.int64) << (24 - 8 * i) for i in range(4))
        fresh = np.array([numbers.get(int(a), int(a)) for a in old], dtype=np.int64)
        for i in range(4):
            raw[ip + offset + i] = (fresh >> (24 - 8 * i)) & 0xFF
    ported = ip[np.isin(raw[ip + 23], (6, 17))]
    for offset in (34, 36):
        port = (raw[ported + offset].astype(np.int64) << 8) | raw[ported + offset + 1]
        port = (port + PORT_SHIFT) % 65_536
        raw[ported + offset], raw[ported + offset + 1] = port >> 8, port & 0xFF
    kept = np.flatnonzero(ts >= from_ns)
    start = int(at[kept[0]]) - RECORD_BYTES if len(kept) else len(raw)
    target.write_bytes(raw[:HEADER_BYTES].tobytes() + raw[start:].tobytes())


def _put(raw: Array, at: Array, values: Array) -> None:
    for i in range(4):
        raw[at + i] = (values >> (8 * i)) & 0xFF


def first_ns(source: Path) -> int:
    """Return the time of the first packet of a gzip capture (ns)."""
    return int(records(gzip.decompress(source.read_bytes()))[1][0])
