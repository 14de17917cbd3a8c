"""Files that are not captures: told by content, read by the format that is surest of them."""

from __future__ import annotations

import importlib
import io
import pkgutil
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np

from skewscope.core.directory import Directory
from skewscope.core.tables import Heard, Table
from skewscope.sources import formats
from skewscope.sources.format import SNIFF_BYTES, Format, Origin
from skewscope.sources.tree import TreeStream, is_tree
from skewscope.sources.unpack import DAMAGE, STANDARD_INPUT, Stream, UnreadableError, reason

SURE = 2
"""How sure a format must be of a file that was found, not named."""

MAX_SOURCES = 0xFFFF
"""Files beyond share the last number: the column of samples is 16 bits wide."""

UNREGISTERED = -1

PACKED = {".gz", ".xz", ".bz2", ".zst", ".lz4"}
STAMP = re.compile(r"(?<!\d)([1-8]\d{9})(?:\.(\d{1,9})|(\d{3}|\d{6}|\d{9}))?(?!\d)")
"""A Unix time in a file's name, in seconds (with a fraction), milli-, micro- or nanoseconds."""

HOST_FOLDERS = frozenset({"counters", "logs"})
"""Folders of a case in which files, or the folders of files, are called by hosts."""


class DocumentError(Exception):
    """A file that no format reads; the message is one line for the user."""


@dataclass
class DocumentStats:
    """What one file held and what was wrong with it."""

    rows: Counter[str] = field(default_factory=Counter)
    """Rows per table."""
    first_ns: int = 0
    last_ns: int = 0
    names: Counter[str] = field(default_factory=Counter)
    """Rows per canonical name."""
    unmapped: Counter[str] = field(default_factory=Counter)
    """Readings left out because the name table does not have their names, by name."""
    notes: list[str] = field(default_factory=list)


@cache
def all_formats() -> tuple[Format, ...]:
    """Return every format, in the order of their file names."""
    found = sorted(m.name for m in pkgutil.iter_modules(formats.__path__) if not m.name.startswith("_"))
    modules = [importlib.import_module(f"{formats.__name__}.{name}") for name in found]
    return tuple(m.FORMAT for m in modules if hasattr(m, "FORMAT"))


def tell(head: bytes, name: str) -> Format | None:
    """Return the format that is surest of an input that begins so."""
    best = max(all_formats(), key=lambda f: f.sure(head, name), default=None)
    return best if best is not None and best.sure(head, name) > 0 else None


def bare_name(path: Path) -> str:
    """Return a file's name without the suffixes of compression."""
    while path.suffix in PACKED:
        path = path.with_suffix("")
    return path.name


def stamp_ns(name: str, otherwise_ns: int) -> int:
    """Return the time that a file's name tells, else `otherwise_ns`."""
    found = STAMP.search(name)
    if found is None:
        return otherwise_ns
    seconds, fraction, digits = found.groups()
    return int(seconds) * 10**9 + int((fraction or digits or "0").ljust(9, "0"))


def host_of(path: Path) -> str:
    """Return the host or endpoint that a file describes where its place in a case folder says so.

    `metrics/<endpoint>/<time>.prom` is of the endpoint, as any file that is called by a time alone is of
    its folder; `counters/<host>.txt`, `counters/<host>/...` and `logs/...` likewise are of the host.
    """
    name = bare_name(path)
    if STAMP.sub("", name.partition(".")[0]) == "" and STAMP.match(name):
        return path.parent.name
    parents = [parent.name for parent in path.parents]
    for level, folder in enumerate(parents[:3]):
        if folder in HOST_FOLDERS:
            return parents[level - 1] if level else name.partition(".")[0]
        if folder == "metrics":
            return parents[level - 1] if level else ""
    return ""


Opened = Stream | TreeStream
"""A file, or a /sys tree as the text of it."""


class _Raw(io.RawIOBase):
    """A Stream with what was read of it put back, as the standard library's raw stream."""

    def __init__(self, head: bytes, stream: Opened) -> None:
        self._head, self._stream = head, stream
        self.problem = ""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        view = memoryview(buffer).cast("B")
        if self._head:
            part, self._head = self._head[: len(view)], self._head[len(view) :]
            view[: len(part)] = part
            return len(part)
        try:
            return self._stream.readinto(view)
        except (UnreadableError, *DAMAGE) as error:
            self.problem = f"the rest cannot be read: {reason(error)}"
            return 0


class Document:
    """One file of counters, metrics, logs or flow records, or a /sys tree: an iterator of sample tables.

    Only while `batches` runs is the file open: a folder of a day's scrapes has thousands.
    """

    def __init__(self, path: Path, directory: Directory) -> None:
        """Tell the file's format; raises DocumentError with a one-line reason."""
        self.path = path
        self.stats = DocumentStats()
        self._directory = directory
        self._is_tree = is_tree(path)
        stream = self._open()
        try:
            head = self._head(stream)
            name = bare_name(path.parent if self._is_tree and path.name == "sys" else path)
            found = tell(head, name)
            if found is None:
                raise DocumentError(f"{path}: not a format that skewscope reads")
        except BaseException:
            stream.close()
            raise
        self.format = found
        self.sure = found.sure(head, name)
        self.kind = found.kind
        self.size = stream.size
        self.stamped = stamp_ns(name, 0) != 0
        """Whether the file's name tells a time."""
        self._done = False
        self._stream: Opened | None = None
        self._kept: tuple[bytes, Opened] | None = None
        if path == STANDARD_INPUT:  # it cannot be read twice
            self._kept = head, stream
        else:
            stream.close()
        self.origin = Origin(
            directory,
            UNREGISTERED,
            name,
            host=host_of(path),
            at_ns=stamp_ns(name, _written_ns(path)),
        )

    def _open(self) -> Opened:
        try:
            return TreeStream(self.path) if self._is_tree else Stream(self.path)
        except (UnreadableError, *DAMAGE) as error:
            raise DocumentError(f"{self.path}: cannot read: {reason(error)}") from error

    def _head(self, stream: Opened) -> bytes:
        head = bytearray(SNIFF_BYTES)
        have = 0
        try:
            while have < len(head):
                count = stream.readinto(memoryview(head)[have:])
                if not count:
                    break
                have += count
        except (UnreadableError, *DAMAGE) as error:
            if not have:
                raise DocumentError(f"{self.path}: cannot read: {reason(error)}") from error
        if not have:
            raise DocumentError(f"{self.path}: empty file")
        return bytes(head[:have])

    def position(self) -> int:
        """Return how many bytes of the file on disk were consumed, for progress."""
        if self._stream is not None:
            return self._stream.position
        return self.size if self._done else 0

    def batches(self) -> Iterator[dict[str, Table]]:
        """Yield sample tables until the file ends; each knows how far in time it is."""
        try:
            head, self._stream = self._kept or (b"", self._open())
        except DocumentError as error:  # it was there before
            self.stats.notes.append(str(error).removeprefix(f"{self.path}: "))
            return
        if self.origin.source == UNREGISTERED:
            self.origin.source = register(self._directory, str(self.path))
        raw = _Raw(head, self._stream)
        try:
            for tables in self.format.read(cast(BinaryIO, io.BufferedReader(raw, 1 << 17)), self.origin):
                self._count(tables)
                yield Heard(tables, self.stats.last_ns)
        finally:
            self.close()
        self._done = True
        self.stats.notes += self.origin.notes
        self.stats.unmapped = self.origin.unmapped
        if raw.problem:
            self.stats.notes.append(raw.problem)
        if not self.stats.rows.total():
            self.stats.notes.append("nothing in it that is known")
        elif not self.stamped and self.stats.first_ns == self.stats.last_ns == self.origin.at_ns:
            self.stats.notes.append("tells no time: taken to be as old as the file")

    def _count(self, tables: dict[str, Table]) -> None:
        s = self.stats
        for schema, table in tables.items():
            if not len(table):
                continue
            s.rows[schema] += len(table)
            ts = table["ts_ns"]
            s.first_ns = min(s.first_ns or int(ts.min()), int(ts.min()))
            s.last_ns = max(s.last_ns, int(ts.max()))
            named = {"counters": "name", "metrics": "name", "events": "kind"}.get(schema)
            if named:
                ids, counts = np.unique(table[named], return_counts=True)
                for number, count in zip(ids.tolist(), counts.tolist(), strict=True):
                    s.names[self._directory.names[number]] += count

    def close(self) -> None:
        """Close the file, where it is open."""
        for stream in (self._stream, self._kept[1] if self._kept else None):
            if stream is not None:
                stream.close()
        self._stream = self._kept = None


def register(directory: Directory, name: str) -> int:
    """Return the number of a new source of that name."""
    if len(directory.sources) <= MAX_SOURCES:
        directory.sources.append(name)
    return len(directory.sources) - 1


def looks_like_document(path: Path) -> bool:
    """Say whether a file is surely in a format that is read, captures apart."""
    try:
        document = Document(path, Directory())
    except DocumentError:
        return False
    document.close()
    return document.sure >= SURE


def _written_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
