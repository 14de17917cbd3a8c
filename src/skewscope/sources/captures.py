"""Capture files to sample tables: the only place that reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from skewscope.core.directory import Directory, Tap
from skewscope.core.schemas import PACKETS, ROCE
from skewscope.core.tables import Array, Schema, Table
from skewscope.sources.flow_export import CapturedExports
from skewscope.sources.taps import Taps
from skewscope.sources.unpack import DAMAGE, FOREIGN, Stream, UnreadableError, reason
from skewscope.sources.window import Window
from skewscope.wire import times
from skewscope.wire.formats import ERF, LINK_TYPES, PCAP_MAGICS, PCAPNG_MAGIC
from skewscope.wire.packets import PROTO_LRH, PacketParser
from skewscope.wire.pcap import HEADER_BYTES, PcapReader, parse_header
from skewscope.wire.pcapng import PcapngReader
from skewscope.wire.records import Reader, Rows, Walk
from skewscope.wire.roce_messages import RoceMessages
from skewscope.wire.streams import TABLES, StreamFramer, merged

BLOCK_BYTES = 1 << 21
MAX_RECORDS = 1 << 16


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
    protocols: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


class _TapFramer:
    """All that is framed at one tap: TCP streams and the messages of RDMA."""

    def __init__(self, directory: Directory) -> None:
        self.streams = StreamFramer(directory)
        self._rdma = RoceMessages()

    def feed(self, packets: Table, roce: Table, buf: Array) -> dict[str, Table]:
        return merged(self.streams.feed(packets, buf), self._rdma.feed(roce))

    def finish(self) -> dict[str, Table]:
        return merged(self.streams.finish(), self._rdma.finish())


class Capture:
    """One capture file: an iterator of sample tables in file order.

    Each interface that has packets is a tap of its own (docs/decisions/0014).
    """

    def __init__(self, path: Path, directory: Directory, parser: PacketParser) -> None:
        """Open the file and read its beginning; raises CaptureError with a one-line reason."""
        self.path = path
        self.stats = CaptureStats()
        try:
            self._stream = Stream(path)
        except UnreadableError as error:
            raise CaptureError(f"{path}: {error}") from error
        except DAMAGE as error:
            raise CaptureError(f"{path}: cannot read: {reason(error)}") from error
        self._window = Window(self._stream, BLOCK_BYTES)
        try:
            self._more = self._window.fill()
            self._reader = self._open()
            self._rows = Rows(max(MAX_RECORDS, 2 * times.WITNESSES))
            self._check_links()
        except BaseException:
            self._stream.close()
            raise
        self.kind = self._reader.kind
        self.size = self._stream.size
        self._directory, self._parser = directory, parser
        self._clock = times.new_clock()
        self._taps = Taps(path, directory)
        self._framers: dict[int, _TapFramer] = {}
        self._exports = CapturedExports(path, directory, parser)
        self._last_ts = 0

    @property
    def tap(self) -> Tap:
        """The file's first tap."""
        return self._taps.taps[0]

    def _open(self) -> Reader:
        window = self._window
        head = window.buf[: min(window.high, HEADER_BYTES)].tobytes()
        if not head and window.problem:
            raise CaptureError(f"{self.path}: cannot read: {window.problem}")
        if not head:
            raise CaptureError(f"{self.path}: empty file")
        for magic, advice in FOREIGN.items():
            if head.startswith(magic):
                raise CaptureError(f"{self.path}: {advice}")
        if head[:4] == PCAPNG_MAGIC:
            return PcapngReader()
        header = parse_header(head)
        if header is None:
            cut = head[:4] in PCAP_MAGICS
            why = "ends within its file header" if cut else "not a capture file (no pcap magic number)"
            raise CaptureError(f"{self.path}: {why}")
        window.consume(HEADER_BYTES)
        return PcapReader(header)

    def _check_links(self) -> None:
        """Refuse a file of which nothing can be parsed; a mixed one is read in part."""
        state = self._reader.save()
        walk = self._reader.walk(self._window.bytes(), self._window.low, self._rows, 1)
        links = {i.link for i in self._reader.interfaces}
        self._reader.restore(state)
        if walk.problem and not links:
            raise CaptureError(f"{self.path}: {walk.problem}")
        if links and not links & LINK_TYPES.keys():
            names = " and ".join(map(str, sorted(links)))
            raise CaptureError(f"{self.path}: link type {names} is not read (Ethernet is 1)")

    def position(self) -> int:
        """Return how many bytes of the file on disk were consumed, for progress."""
        return self._stream.position

    def batches(self) -> Iterator[dict[str, Table]]:
        """Yield sample tables, at most MAX_RECORDS packets each, until the file ends."""
        problem = ""
        while not problem:
            walk = self._walk()
            window = self._window
            progress = walk.end > window.low or walk.skip > 0
            if walk.rows:
                tables = self._tables(walk.rows)
                if tables is not None:
                    yield tables
            self.stats.raw_bytes += walk.end - window.low
            window.consume(walk.end, walk.skip)
            problem = walk.problem
            if not progress and not problem:
                if not self._more:
                    break
                self._more = window.fill()
        self._conclude(problem)
        yield self._finish()

    def _walk(self) -> Walk:
        """Fill the rows with records whose times are settled."""
        reader, rows, low = self._reader, self._rows, self._window.low
        state = reader.save()
        walk = reader.walk(self._window.bytes(), low, rows, len(rows))
        # Behind a block that is skipped the buffer holds nothing: those rows cannot wait either.
        full = walk.rows == len(rows)
        last = bool(walk.problem) or walk.skip > 0 or not (self._more or full)
        erf = np.array([i.link == ERF for i in reader.interfaces], dtype=np.bool_)
        if erf.any():
            n = walk.rows
            columns = (rows.at[:n], rows.captured[:n], rows.interface[:n])
            times.take_erf(self._window.bytes(), *columns, erf, rows.ts[:n])
        settled = int(times.mend(rows.ts[: walk.rows], self._clock, last))
        if settled < walk.rows:
            mended = rows.ts[:settled].copy()
            reader.restore(state)
            walk = reader.walk(self._window.bytes(), low, rows, settled)
            rows.ts[:settled] = mended
        return walk

    def _tables(self, n: int) -> dict[str, Table] | None:
        """Parse the first n rows; None where none of them is of a kind that is read."""
        rows, buf = self._rows, self._window.bytes()
        taps, links = self._taps.place(rows.interface[:n], self._reader.interfaces)
        keep: slice | Array = slice(0, n)
        if isinstance(taps, int):
            if taps < 0:
                return None
        elif not (taps >= 0).all():
            keep = np.flatnonzero(taps >= 0)
            if not len(keep):
                return None
            assert not isinstance(links, int)
            taps, links = taps[keep], links[keep]
        frames = rows.frame[:n][keep]
        packets, roce = self._parser.parse(
            buf,
            rows.ts[:n][keep].copy(),
            rows.at[:n][keep],
            rows.captured[:n][keep],
            rows.wire[:n][keep],
            taps if isinstance(taps, int) else self.tap.index,
            int(frames[0]),
            links,
        )
        if self.kind == "pcapng":
            _relabel(packets, roce, frames, taps, rows.direction[:n][keep])
        self._count(packets)
        tables = self._frame(packets, roce, buf, taps)
        tables |= self._exports.feed(packets, buf)
        tables["packets"], tables["roce"] = packets, roce
        packets["payload_at"][:] = -1
        return tables

    def _frame(self, packets: Table, roce: Table, buf: Array, taps: int | Array) -> dict[str, Table]:
        """Reassemble and frame the streams, each tap for itself."""
        if isinstance(taps, int):
            return self._framer(taps).feed(packets, roce, buf)
        parts: dict[str, list[Table]] = {name: [] for name in TABLES}
        for tap in np.unique(taps):
            mine, rdma = packets.take(np.flatnonzero(taps == tap)), roce.take(roce["tap"] == tap)
            for name, table in self._framer(int(tap)).feed(mine, rdma, buf).items():
                parts[name].append(table)
        return {name: _merged(TABLES[name], tables) for name, tables in parts.items()}

    def _framer(self, tap: int) -> _TapFramer:
        if tap not in self._framers:
            self._framers[tap] = _TapFramer(self._directory)
        return self._framers[tap]

    def _count(self, packets: Table) -> None:
        s, ts = self.stats, packets["ts_ns"]
        if s.packets == 0:
            s.first_ns = int(ts[0])
        steps = np.diff(ts, prepend=self._last_ts if s.packets else ts[0])
        self._last_ts = int(ts[-1])
        s.backwards += int(np.count_nonzero(steps < 0))
        s.packets += len(packets)
        s.bytes += int(packets["wire_bytes"].sum())
        s.first_ns = min(s.first_ns, int(ts.min()))
        s.last_ns = max(s.last_ns, int(ts.max()))
        # InfiniBand frames are not IP, and read all the same: the roce table has their faults.
        faults = np.bincount(packets["fault"][packets["proto"] < PROTO_LRH])
        for code in np.flatnonzero(faults).tolist():
            s.faults[code] = s.faults.get(code, 0) + int(faults[code])

    def _conclude(self, problem: str) -> None:
        """Note, once at the end, what was wrong with the file."""
        notes, window = self.stats.notes, self._window
        if problem:
            notes.append(f"{problem}: the rest of the file was left out")
        elif len(window) or window.skip:
            size = f" ({len(window)} bytes)" if len(window) else ""
            notes.append(f"the last record is cut off{size}: truncated, or still being written")
        if window.problem:
            notes.append(window.problem)
        elif self._stream.missing and not problem:
            notes.append(f"the file became {self._stream.missing} bytes shorter while it was read")
        mended, leaps = int(self._clock[times.MENDED]), int(self._clock[times.LEAPS])
        if mended:
            notes.append(f"{mended} packets with impossible times: each got that of the packet before")
        if leaps:
            notes.append(f"time leaps by more than a day {'once' if leaps == 1 else f'{leaps} times'}")
        notes += self._reader.notes() + self._taps.notes() + self._exports.notes()

    def _finish(self) -> dict[str, Table]:
        """End all streams; return what was pending in them."""
        parts: dict[str, list[Table]] = {name: [] for name in TABLES}
        spoken: Counter[str] = Counter()
        for framer in self._framers.values():
            for name, table in framer.finish().items():
                parts[name].append(table)
            spoken.update(framer.streams.protocols().values())
        self.stats.protocols = dict(spoken)
        rest = {name: _merged(TABLES[name], tables) for name, tables in parts.items()}
        return {**rest, "packets": PACKETS.empty(), "roce": ROCE.empty()}

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def _relabel(packets: Table, roce: Table, frames: Array, taps: int | Array, direction: Array) -> None:
    """Put in what the parser cannot know: gaps in the frame numbers, several taps, directions.

    All arrays are of shape (rows of `packets`,).
    """
    row = roce["frame"].astype(np.int64) - frames[0]
    packets["frame"][:] = frames
    roce["frame"][:] = frames[row]
    if not isinstance(taps, int):
        packets["tap"][:] = taps
        roce["tap"][:] = taps[row]
    np.copyto(packets["direction"], direction.astype(np.uint8), where=direction > 0)


def _merged(schema: Schema, tables: list[Table]) -> Table:
    """Join what several taps of a file gave in one batch, in event-time order."""
    whole = Table.concat(schema, tables)
    if sum(len(t) > 0 for t in tables) < 2:
        return whole
    return whole.take(np.argsort(whole["ts_ns"], kind="stable"))


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
