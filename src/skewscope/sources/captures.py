"""Capture files to sample tables: the only place that opens them."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from skewscope.core.directory import Directory, Tap
from skewscope.core.schemas import PACKETS, ROCE
from skewscope.core.tables import Table
from skewscope.wire.packets import LINK_ETHERNET, PacketParser
from skewscope.wire.pcap import HEADER_BYTES, PcapHeader, has_magic, parse_header, walk_records
from skewscope.wire.roce_messages import RoceMessages
from skewscope.wire.streams import StreamFramer, merged

BLOCK_BYTES = 1 << 22
MAX_RECORDS = 1 << 16
DAMAGE = (OSError, EOFError, zlib.error, lzma.LZMAError)
"""What the file system and the decompressors raise on files that cannot be read to their end."""

FOREIGN = {
    b"\x0a\x0d\x0d\x0a": "pcapng is not read yet; convert it with `editcap -F nsecpcap`",
    b"\x28\xb5\x2f\xfd": "zstd is not read yet; unpack it with `zstd -d`",
    b"\x04\x22\x4d\x18": "lz4 is not read yet; unpack it with `lz4 -d`",
    b"PK\x03\x04": "a zip archive; unpack it first",
}
"""First bytes of formats that people have instead of a classic capture, and what to do about them."""


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


def _unpacked(raw: BinaryIO) -> BinaryIO:
    """Return the plain bytes of a plain, gzip, bzip2 or xz file, told by its first bytes."""
    magic = raw.read(6)
    raw.seek(0)
    if magic[:2] == b"\x1f\x8b":
        return cast(BinaryIO, gzip.GzipFile(fileobj=raw))
    if magic[:3] == b"BZh":
        return cast(BinaryIO, bz2.BZ2File(raw))
    if magic == b"\xfd7zXZ\x00":
        return cast(BinaryIO, lzma.LZMAFile(raw))
    return raw


class Capture:
    """One capture file as a tap: an iterator of sample tables in file order."""

    def __init__(self, path: Path, directory: Directory, parser: PacketParser) -> None:
        """Open the file and read its header; raises CaptureError with a one-line reason."""
        self.path = path
        self.stats = CaptureStats()
        try:
            self._raw: BinaryIO = path.open("rb")
        except OSError as error:
            raise CaptureError(f"{path}: cannot read: {_reason(error)}") from error
        try:
            self._stream = _unpacked(self._raw)
            self.header = self._head()
        except DAMAGE as error:
            self._raw.close()
            raise CaptureError(f"{path}: cannot read: {_reason(error)}") from error
        except CaptureError:
            self._raw.close()
            raise
        self.tap = Tap(len(directory.taps), str(path), self.header.link_type, self.header.snap_length)
        directory.taps.append(self.tap)
        self._parser = parser
        self._framer = StreamFramer(directory)
        self._roce = RoceMessages()
        self._damaged = False

    def _head(self) -> PcapHeader:
        head = self._stream.read(HEADER_BYTES)
        if not head:
            raise CaptureError(f"{self.path}: empty file")
        if head[:4] in FOREIGN:
            raise CaptureError(f"{self.path}: {FOREIGN[head[:4]]}")
        header = parse_header(head)
        if header is None:
            why = (
                "ends within its file header"
                if has_magic(head)
                else "not a capture file (no pcap magic number)"
            )
            raise CaptureError(f"{self.path}: {why}")
        if header.link_type != LINK_ETHERNET:
            raise CaptureError(f"{self.path}: link type {header.link_type} is not read yet (Ethernet is 1)")
        return header

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
                record = self.stats.packets + 1
                self.stats.notes.append(
                    f"record {record} has an impossible length: the rest of the file was left out"
                )
            if damaged or not block:
                break
        if pending and not damaged:
            self.stats.notes.append(
                f"the last record is cut off ({len(pending)} bytes): truncated, or still being written"
            )
        rest = merged(self._framer.finish(), self._roce.finish())
        rest["packets"], rest["roce"] = PACKETS.empty(), ROCE.empty()
        yield rest

    def _read(self) -> bytes:
        """Return up to BLOCK_BYTES; what came before damage is not lost to it."""
        parts: list[bytes] = []
        size = 0
        while size < BLOCK_BYTES and not self._damaged:
            try:
                part: bytes = cast(BufferedReader, self._stream).read1(BLOCK_BYTES - size)
            except DAMAGE as error:
                plain = self._stream is self._raw
                what = "cannot be read to its end" if plain else "compressed data ends early or is damaged"
                self.stats.notes.append(f"{what} ({_reason(error)})")
                self._damaged = True
                break
            if not part:
                break
            parts.append(part)
            size += len(part)
        return b"".join(parts)

    def _parse(self, data: bytes, start: int) -> tuple[dict[str, Table] | None, int, bool]:
        buf = np.frombuffer(data, dtype=np.uint8)[start:]
        ts = np.empty(MAX_RECORDS, dtype=np.int64)
        at, captured, wire = (np.empty(MAX_RECORDS, dtype=np.int64) for _ in range(3))
        n, used, damage = walk_records(
            buf, self.header.big_endian, self.header.unit_ns, ts, at, captured, wire
        )
        if n == 0:
            return None, 0, bool(damage)
        packets, roce = self._parser.parse(
            buf, ts[:n].copy(), at[:n], captured[:n], wire[:n], self.tap.index, self.stats.packets + 1
        )
        self._count(packets, used)
        tables = merged(self._framer.feed(packets, buf), self._roce.feed(roce))
        tables["packets"], tables["roce"] = packets, roce
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


def open_captures(paths: list[Path], directory: Directory, on_error: Callable[[str], None]) -> list[Capture]:
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
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text).splitlines()[0]
