"""Hand-made packets for the wire tests: a small builder, splitting, and a comparison of tables."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from skewscope.core.directory import Directory
from skewscope.core.schemas import PACKETS
from skewscope.core.tables import Table
from skewscope.wire.streams import TABLES, Limits, StreamFramer

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16


@dataclass(frozen=True)
class Segment:
    """One TCP packet; `kept` payload bytes are captured (all by default)."""

    data: bytes = b""
    seq: int = 1000
    way: int = 0
    ack: int | None = None
    flags: int = 0
    flow: int = 1
    kept: int | None = None
    ts: int | None = None


def packets(segments: Sequence[Segment]) -> tuple[Table, np.ndarray]:
    """Return the `packets` table and the buffer of segments captured 1 ms apart (or at their ts)."""
    kept = [s.data if s.kept is None else s.data[: s.kept] for s in segments]
    at = np.cumsum([3] + [len(k) + 2 for k in kept])[:-1]
    buffer = np.frombuffer(b"\xaa" * 3 + b"".join(k + b"\xaa\xaa" for k in kept), np.uint8)
    flow = np.array([s.flow for s in segments])
    way = np.array([s.way for s in segments])
    flags = [s.flags | (ACK if s.ack is not None else 0) for s in segments]
    columns = {
        "ts_ns": np.array([i * 1_000_000 if s.ts is None else s.ts for i, s in enumerate(segments)]),
        "frame": np.arange(1, len(segments) + 1),
        "flow": flow,
        "way": way,
        "src": 2 * flow + way,
        "dst": 2 * flow + 1 - way,
        "proto": np.full(len(segments), 6),
        "payload_bytes": np.array([len(s.data) for s in segments]),
        "captured_bytes": np.array([len(k) for k in kept]),
        "payload_at": at,
        "seq": np.array([s.seq % 2**32 for s in segments]),
        "ack": np.array([(s.ack or 0) % 2**32 for s in segments]),
        "flags": np.array(flags),
    }
    return Table(PACKETS, columns), buffer


def run(
    segments: Sequence[Segment], cuts: Iterable[int] = (), limits: Limits | None = None
) -> tuple[dict[str, Table], Directory]:
    """Frame segments, fed in the pieces that the cuts make, and finish."""
    table, buffer = packets(segments)
    return run_table(table, buffer, cuts, limits)


def run_table(
    table: Table, buffer: np.ndarray, cuts: Iterable[int] = (), limits: Limits | None = None
) -> tuple[dict[str, Table], Directory]:
    """Frame a table; every piece gets a buffer of its own, wiped after the call."""
    directory = Directory()
    framer = StreamFramer(directory, limits)
    edges = [0, *sorted({c % (len(table) + 1) for c in cuts}), len(table)]
    parts: list[dict[str, Table]] = []
    for first, last in pairwise(edges):
        own = buffer.copy()
        parts.append(framer.feed(table.take(slice(first, last)), own))
        own[:] = 0xFF
    parts.append(framer.finish())
    return {n: Table.concat(TABLES[n], [p[n] for p in parts]) for n in TABLES}, directory


def rows(table: Table, *names: str) -> list[tuple[int, ...]]:
    """Return the named columns as a list of tuples."""
    return list(zip(*(table[n].tolist() for n in names), strict=True))


def same(one: dict[str, Table], two: dict[str, Table]) -> bool:
    """Tell whether all tables are equal."""
    return all(rows(one[n], *one[n].columns) == rows(two[n], *two[n].columns) for n in TABLES)


def chop(stream: bytes, sizes: Sequence[int], seq: int = 1000, **fields: int) -> list[Segment]:
    """Cut a byte stream into segments of the given sizes, repeated until it ends."""
    out: list[Segment] = []
    at = 0
    while at < len(stream):
        size = max(1, sizes[len(out) % len(sizes)])
        out.append(Segment(stream[at : at + size], seq + at, **fields))
        at += size
    return out


def preamble(opcode: int = 1, payload: int = 512, prefix: int = 4, tag: int = 7, delta: int = 0) -> bytes:
    """Return a Gloo preamble; a notification carries its buffer's length but no payload."""
    nbytes = 48 + (payload if opcode <= 1 else 0)
    return struct.pack("<6Q", nbytes, opcode, prefix << 56 | tag << 24 | delta, 0, payload, 0)


def gloo_message(opcode: int = 1, payload: int = 512, prefix: int = 4, tag: int = 7) -> bytes:
    """Return a whole Gloo message."""
    body = b"\x5a" * payload if opcode <= 1 else b""
    return preamble(opcode, payload, prefix, tag) + body


def tls_record(kind: int = 23, size: int = 100, version: int = 3) -> bytes:
    """Return a TLS record."""
    return struct.pack(">BBBH", kind, 3, version, size) + b"\x9c" * size
