"""Capture files to sample tables: the only place that opens them."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from skewscope.core.directory import Directory, Tap
from skewscope.core.schemas import PACKETS
from skewscope.core.tables import Table
from skewscope.wire.packets import LINK_ETHERNET, PacketParser
from skewscope.wire.pcap import HEADER_BYTES, parse_header, walk_records
try:
    from skewscope.wire.streams import StreamFramer
except ImportError: pass

BLOCK_BYTES = 1 << 22
MAX_RECORDS = 1 << 16
PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"


class CaptureError(Exception):
    """A file that cannot be read as a capture; the message is one line for the user."""


@dataclass
class CaptureStats:
    """What one file held and what was wrong with it."""

    packets: int = 0
    bytes: int = 0
    raw_bytes: int = 0
    first_ns: int = 0
    last_ns: int = 0
    backwards: int = 0
    faults: dict[int, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def _open(path: Path) -> tuple[BinaryIO, BinaryIO]:
    """Open a plain, gzip or xz file by its first bytes; returns (stream, underlying file)."""
    raw = path.open("rb")
    magic = raw.read(6)
    raw.seek(0)
    if magic[:2] == b"\x1f\x8b":
        return cast(BinaryIO, gzip.GzipFile(fileobj=raw)), raw
    if magic == b"\xfd7zXZ\x00":
        return cast(BinaryIO, lzma.LZMAFile(raw)), raw
    return raw, raw


class Capture:
    """One capture file as a tap: an iterator of sample tables in file order."""

    def __init__(self, path: Path, directory: Directory, parser: PacketParser) -> None:
        """Open the file and read its header; raises CaptureError with a one-line reason."""
        self.path = path
        self.stats = CaptureStats()
        try:
            self._stream, self._raw = _open(path)
            head = self._stream.read(HEADER_BYTES)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise CaptureError(f"{path}: cannot read: {_reason(error)}") from error
        if not head:
            raise CaptureError(f"{path}: empty file")
        if head[:4] == PCAPNG_MAGIC:
            raise CaptureError(f"{path}: pcapng is not read yet; convert it with `editcap -F nsecpcap`")
        header = parse_header(head)
        if header is None:
            raise CaptureError(f"{path}: not a capture file (no pcap magic number)")
        if header.link_type != LINK_ETHERNET:
            raise CaptureError(f"{path}: link type {header.link_type} is not read yet (Ethernet is 1)")
        self.header = header
        self.tap = Tap(len(directory.taps), str(path), header.link_type, header.snap_length)
        directory.taps.append(self.tap)
        self._parser = parser
        self._framer = StreamFramer(directory)

    def position(self) -> int:
        """Return how many bytes of the file on disk were consumed, for progress."""
        try:
            return self._raw.tell()
        except ValueError:
            return self.path.stat().st_size

    def batches(self) -> Iterator[dict[str, Table]]:
        """Yield sample tables, at most MAX_RECORDS packets each, until the file ends."""
        pending = b""
        while True:
            block = self._read()
            if block:
                pending = pending + block if pending else block
            consumed, damaged = 0, False
            while True:
                tables, used, damaged = self._parse(pending, consumed)
                if tables is not None:
                    yield tables
                consumed += used
                if used == 0 or damaged:
                    break
            pending = pending[consumed:]
            if damaged:
                self.stats.notes.append(
                    f"record {self.stats.packets + 1} has an impossible length: the rest of the file was left out"
                )
            if damaged or not block:
                break
        if pending and not damaged:
            self.stats.notes.append(
                f"the last record is cut off ({len(pending)} bytes): truncated, or still being written"
            )
        rest = self._framer.finish()
        rest["packets"] = PACKETS.empty()
        yield rest

    def _read(self) -> bytes:
        try:
            return self._stream.read(BLOCK_BYTES)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            self.stats.notes.append(f"compressed data ends early or is damaged ({_reason(error)})")
            return b""

    def _parse(self, data: bytes, start: int) -> tuple[dict[str, Table] | None, int, bool]:
        buf = np.frombuffer(data, dtype=np.uint8)[start:]
        ts = np.empty(MAX_RECORDS, dtype=np.int64)
        at, captured, wire = (np.empty(MAX_RECORDS, dtype=np.int64) for _ in range(3))
        n, used, damage = walk_records(buf, self.header.big_endian, self.header.unit_ns, ts, at, captured, wire)
        if n == 0:
            return None, 0, bool(damage)
        packets = self._parser.parse(
            buf, ts[:n].copy(), at[:n], captured[:n], wire[:n], self.tap.index, self.stats.packets + 1
        )
        self._count(packets, used)
        tables = self._framer.feed(packets, buf)
        tables["packets"] = packets
        packets["payload_at"][:] = -1
        return tables, used, bool(damage)

    def _count(self, packets: Table, used: int) -> None:
        s, ts = self.stats, packets["ts_ns"]
        if s.packets == 0:
            s.first_ns = int(ts[0])
        steps = np.diff(ts, prepend=s.last_ns or ts[0])
        s.backwards += int(np.count_nonzero(steps < 0))
        s.packets += len(packets)
        s.bytes += int(packets["wire_bytes"].sum())
        s.raw_bytes += used
        s.first_ns = min(s.first_ns, int(ts.min()))
        s.last_ns = max(s.last_ns, int(ts.max()))
        for code, count in zip(*np.unique(packets["fault"], return_counts=True), strict=True):
            s.faults[int(code)] = s.faults.get(int(code), 0) + int(count)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()
        self._raw.close()


def open_captures(
    paths: list[Path], directory: Directory, on_error: Callable[[str], None]
) -> list[Capture]:
    """Open every readable capture; `on_error` is told one line about each of the others."""
    parser = PacketParser(directory)
    opened = []
    for path in paths:
        try:
            opened.append(Capture(path, directory, parser))
        except CaptureError as error:
            on_error(str(error))
    return opened


def _reason(error: BaseException) -> str:
    text = str(error) or type(error).__name__
    return text.splitlines()[0]
