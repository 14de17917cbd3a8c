"""What is fuzzed: each target takes any bytes and must return, without an exception and in bounded time.

Where two ways must give the same result (one batch or many), a target compares them: an inequality is
a finding too. Kernels run uncompiled (NUMBA_DISABLE_JIT=1), so that NumPy checks every index and the
fuzzer sees every branch.
"""

from __future__ import annotations

import io
import os
import struct
import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import pyarrow as pa

from skewscope.app import pipeline
from skewscope.core.directory import Directory
from skewscope.core.tables import Table
from skewscope.sources.captures import Capture, CaptureError
from skewscope.sources.documents import all_formats, tell
from skewscope.sources.flow_export import FlowExports, Payload
from skewscope.sources.format import SNIFF_BYTES, Format, Origin
from skewscope.sources.formats import otlp_metrics as otlp
from skewscope.sources.formats import prometheus_text as text_format
from skewscope.sources.formats import remote_write as pushed
from skewscope.wire import build
from skewscope.wire.packets import PacketParser
from skewscope.wire.streams import StreamFramer

LINKS = (1, 0, 12, 101, 108, 113, 197, 228, 229, 247, 276)
"""Link types that the parser reads, and their near relatives."""

OPENINGS = (
    b"",
    b"GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    b"\x16\x03\x01\x00\x20",
    struct.pack("<6Q", 112, 1, 4 << 56 | 1 << 24, 0, 64, 0),
    b"\xff\x00\x00\x00\x00\x00\x00\x00\x01\x7f\x03\x00NULL" + bytes(48),
    struct.pack("<QIB", 0x564A_B9F2_FC4B_9D6C, 3, 0) + struct.pack("<i", 64) + bytes(64),
)
"""How the protocols begin that are told by content: without them a fuzzer seldom gets that far."""

A, B = b"\x0a\x00\x00\x01", b"\x0a\x00\x00\x02"
MAC = b"\x02\x00\x00\x00\x00\x01"
_SCRATCH = Path(
    tempfile.mkdtemp(prefix="skewscope-fuzz-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
)


def _parse(frames: list[bytes], link: int = 1, steps: int = 1) -> tuple[list[Table], np.ndarray, Directory]:
    """Parse frames in `steps` batches over one buffer."""
    directory = Directory()
    parser = PacketParser(directory)
    buf = np.frombuffer(b"".join(frames) or b"\0", np.uint8)
    sizes = np.array([len(f) for f in frames], np.int64)
    at = np.concatenate([[0], np.cumsum(sizes)])[:-1].astype(np.int64)
    ts = np.arange(len(frames), dtype=np.int64) * 1_000_000
    cuts = np.linspace(0, len(frames), steps + 1).astype(int)
    tables = []
    for lo, hi in pairwise(cuts):
        rows = slice(lo, hi)
        tables.append(
            parser.parse(buf, ts[rows], at[rows], sizes[rows], sizes[rows], 0, int(lo) + 1, link).packets
        )
    return tables, buf, directory


def _pieces(data: bytes) -> Iterator[bytes]:
    """Cut the input into pieces, each with its length in front (two bytes, little endian)."""
    at = 0
    while at + 2 <= len(data):
        size = int.from_bytes(data[at : at + 2], "little") & 0x7FF
        yield data[at + 2 : at + 2 + size]
        at += 2 + size


def capture(data: bytes) -> None:
    """Any file as a capture."""
    path = _SCRATCH / "case"
    path.write_bytes(data)
    directory = Directory()
    try:
        one = Capture(path, directory, PacketParser(directory))
    except CaptureError as error:
        assert len(str(error).splitlines()) == 1
        return
    try:
        for _ in one.batches():
            pass
    finally:
        one.close()


def frames(data: bytes) -> None:
    """Any frames under any link type; one batch and three give the same columns."""
    if not data:
        return
    link = LINKS[data[0] % len(LINKS)]
    pieces = list(_pieces(data[1:]))
    whole, _, _ = _parse(pieces, link)
    split, _, _ = _parse(pieces, link, 3)
    for name in whole[0].schema.columns:
        assert np.array_equal(whole[0][name], np.concatenate([t[name] for t in split])), name


def roce(data: bytes) -> None:
    """Any UDP payload on the RoCEv2 port."""
    made = [
        build.ethernet(MAC, MAC, build.ipv4(A, B, 17, build.udp(A, B, 4000, 4791, p))) for p in _pieces(data)
    ]
    _parse(made)


def stream(data: bytes) -> None:
    """A TCP connection with gaps, overlaps and reordering; one batch and three give the same rows."""
    if not data:
        return
    opening = OPENINGS[data[0] % len(OPENINGS)]
    seq = [1000, 1000]
    segments = [(0, 1000, opening)] if opening else []
    seq[0] += len(opening)
    for piece in _pieces(data[1:]):
        way, step = (piece[0] & 1, (piece[0] >> 1) - 64) if piece else (0, 0)
        step = step if abs(step) > 56 else 0  # most segments follow on
        segments.append((way, max(0, seq[way] + step), piece[1:]))
        seq[way] = max(seq[way], segments[-1][1] + len(piece) - 1)
    made = [_segment(way, at, payload) for way, at, payload in segments]
    results = []
    for steps in (1, 3):
        tables, buf, directory = _parse(made, 1, steps)
        framer = StreamFramer(directory)
        parts = [framer.feed(t, buf) for t in tables] + [framer.finish()]
        results.append({n: sum(len(p[n]) for p in parts) for n in parts[0]})
    assert results[0] == results[1], results


def _segment(way: int, seq: int, payload: bytes) -> bytes:
    src, dst, sport, dport = (A, B, 4000, 8000) if way == 0 else (B, A, 8000, 4000)
    body = build.tcp(src, dst, sport, dport, seq, 0, 24, 65535, payload)
    return build.ethernet(MAC, MAC, build.ipv4(src, dst, 6, body))


def diagnose(data: bytes) -> None:
    """A whole run over a capture of any frames at any times."""
    path = _SCRATCH / "run.pcap"
    records, now = [], 1_700_000_000_000_000_000
    for piece in _pieces(data):
        now += int.from_bytes(piece[:3], "little") * 1000
        records.append((now, piece[3:], len(piece)))
    path.write_bytes(build.capture(records, 65535))
    pipeline.run([path])


def document(data: bytes) -> None:
    """Any file as the format that its content tells, and as the one that its first byte names."""
    if not data:
        return
    formats, rest = all_formats(), data[1:]
    told = tell(rest[:SNIFF_BYTES], "case")
    for format_ in {formats[data[0] % len(formats)], *([told] if told else [])}:
        origin = Origin(Directory(), 0, "case", at_ns=10**18)
        stream = cast(BinaryIO, io.BufferedReader(io.BytesIO(rest)))
        for tables in format_.read(stream, origin):
            assert all(isinstance(t, Table) for t in tables.values())
        assert all("\n" not in note for note in origin.notes)


def exports(data: bytes) -> None:
    """Datagrams of flow exporters."""
    directory = Directory()
    decoder = FlowExports(directory, PacketParser(directory))
    payloads = [Payload(10**18, k, "10.0.0.9", p) for k, p in enumerate(_pieces(data), 1)]
    tables = decoder.feed(payloads, Origin(directory, 0))
    assert np.isfinite(tables["flow_records"]["nbytes"]).all()


def prometheus_text(data: bytes) -> None:
    """Any text as an exposition; whole and line by line the same number of readings."""
    text_format.FORMAT.sure(data, "x.prom")
    whole = _rows(text_format.FORMAT, data)
    parts = [_rows(text_format.FORMAT, line + b"\n") for line in data.split(b"\n")]
    assert whole <= sum(parts), (whole, parts)  # a second name of one fact counts in parts only


def remote_write(data: bytes) -> None:
    """Any body of a remote write, as it is and packed."""
    pushed.FORMAT.sure(data, "x")
    _rows(pushed.FORMAT, data)
    _rows(pushed.FORMAT, bytes(pa.Codec("snappy").compress(data)))


def otlp_metrics(data: bytes) -> None:
    """Any OTLP request, protobuf or JSON."""
    otlp.FORMAT.sure(data, "x")
    _rows(otlp.FORMAT, data)
    _rows(otlp.FORMAT, b'{"resourceMetrics":' + data)


def _rows(format_: Format, data: bytes) -> int:
    origin = Origin(Directory(), 0, "x", at_ns=1)
    return sum(len(t) for tables in format_.read(io.BytesIO(data), origin) for t in tables.values())


TARGETS: dict[str, Callable[[bytes], None]] = {
    t.__name__: t
    for t in (
        capture, frames, roce, stream, diagnose, prometheus_text, remote_write, otlp_metrics,
        document, exports,
    )
}  # fmt: skip
