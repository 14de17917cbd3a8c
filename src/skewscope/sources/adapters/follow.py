"""Logs that are followed: files that grow, are cut or replaced, and the kernel's own messages."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from skewscope.core.directory import Directory
from skewscope.core.tables import Heard, Table
from skewscope.sources.adapters.poll import read_all
from skewscope.sources.format import LINE_BYTES, Format, Origin

PIECE_BYTES = 1 << 20
MOST_PIECES = 16
"""Pieces read in one turn: the rest waits for the next."""
KMSG = Path("/dev/kmsg")
KMSG_RECORD = 1 << 13
"""Longest record (Linux, `Documentation/ABI/testing/dev-kmsg`)."""
MOST_RECORDS = 1 << 14


class LogFile:
    """The lines that are added to a file; like `tail -F` it goes on when the file is cut or replaced."""

    def __init__(self, path: Path, from_start: bool = False) -> None:
        self._path, self._at, self._file = path, 0, -1
        self._pending = b""
        self._skip_to_end = not from_start
        self.lost_bytes = 0

    def lines(self) -> bytes:
        """Return the whole lines that came since the last call; nothing where the file is not there."""
        self._open()
        if self._file < 0:
            return b""
        out = [self._pending]
        for _ in range(MOST_PIECES):
            try:
                data = os.read(self._file, PIECE_BYTES)
            except OSError:
                self._close()
                break
            if not data:
                break
            self._at += len(data)
            out.append(data)
        text = b"".join(out)
        end = text.rfind(b"\n") + 1
        self._pending = text[end:]
        if len(self._pending) > LINE_BYTES:  # no line is so long
            self.lost_bytes += len(self._pending)
            self._pending = b""
        return text[:end]

    def _open(self) -> None:
        try:
            found = self._path.stat()
        except OSError:
            return  # between two files of a rotation: what is left in the old one is still read
        if self._file >= 0:
            held = os.fstat(self._file)
            if (held.st_dev, held.st_ino) == (found.st_dev, found.st_ino):
                if found.st_size < self._at:  # cut and begun anew
                    os.lseek(self._file, 0, os.SEEK_SET)
                    self._at, self._pending = 0, b""
                return
            if held.st_size > self._at:
                return  # the old file first
            self._close()
        try:
            self._file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return
        self._at = os.lseek(self._file, 0, os.SEEK_END) if self._skip_to_end else 0
        self._skip_to_end = False  # a file that comes later is new from its beginning
        self._pending = b""

    def _close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    close = _close


class KernelRing:
    """The records of /dev/kmsg with the time of the wall clock; OSError where it may not be read.

    The kernel's stamps count since it started, so that time is taken from the two clocks now.
    """

    def __init__(self, path: Path = KMSG, from_start: bool = False) -> None:
        self._file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if not from_start:
            os.lseek(self._file, 0, os.SEEK_END)
        self.lost_records = 0

    def lines(self) -> bytes:
        """Return the records since the last call as lines `kern :x: <ISO time> <text>`."""
        started_ns = time.time_ns() - time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        out = []
        for _ in range(MOST_RECORDS):
            try:
                record = os.read(self._file, KMSG_RECORD)
            except BlockingIOError:
                break
            except OSError as error:
                if error.errno != errno.EPIPE:  # EPIPE: records were overwritten before they were read
                    raise
                self.lost_records += 1
                continue
            if not record:
                break
            out.append(dated(record, started_ns))
        return b"".join(out)

    def close(self) -> None:
        """Close the device."""
        os.close(self._file)


def dated(record: bytes, started_ns: int) -> bytes:
    """Return a record of /dev/kmsg as a line with the time of the wall clock."""
    head, _, text = record.partition(b";")
    try:
        micros = int(head.split(b",")[2])
    except (IndexError, ValueError):
        return b""
    ns = started_ns + micros * 1000
    when = datetime.fromtimestamp(ns // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%S")
    first = text.split(b"\n")[0]
    return f"kern  :x     : {when},{ns % 10**9 // 1000:06}+00:00 ".encode() + first + b"\n"


class Follow:
    """A log under one format: each turn reads what was added."""

    def __init__(
        self, name: str, log: LogFile | KernelRing, format: Format, directory: Directory, *,
        host: str = "", period_s: float = 0.25,
    ) -> None:  # fmt: skip
        self.name, self.format = name, format
        self._log, self._host, self._period_s = log, host, period_s
        self._directory = directory
        directory.sources.append(name)
        self._source = len(directory.sources) - 1
        self._lines = 0
        self.notes: list[str] = []

    def once(self) -> dict[str, Table]:
        """Read what was added; line numbers count on from turn to turn."""
        at_ns = time.time_ns()
        data = self._log.lines()
        if not data:
            return {}
        origin = Origin(self._directory, self._source, Path(self.name).name, host=self._host, at_ns=at_ns)
        tables = read_all(self.format, data, origin)
        for table in tables.values():
            table["line"][:] += min(self._lines, 2**31)
        self._lines += data.count(b"\n")
        self.notes = origin.notes
        return tables

    def batches(self, stop: Callable[[], bool]) -> Iterator[dict[str, Table]]:
        """Yield the tables of each turn until `stop()`; each knows how far in time it is."""
        while not stop():
            now_ns = time.time_ns()
            yield Heard(self.once(), now_ns)
            time.sleep(self._period_s)

    def close(self) -> None:
        """Close the log."""
        self._log.close()
