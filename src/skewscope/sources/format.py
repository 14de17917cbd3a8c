"""What a format of counters, metrics, logs or flow records is: how it is told, how it is read.

A format is one file in `formats/` with a `FORMAT`; nothing else has to be edited. Live adapters feed the
same `read` with what they fetched, so a file and a live source give the same samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from skewscope.core.directory import Directory
from skewscope.core.tables import Schema, Table

SNIFF_BYTES = 1 << 14
"""Bytes of the (unpacked) beginning that a format is told by."""

LINE_BYTES = 1 << 22
"""Longest line that is read whole: NCCL and engine logs hold JSON objects of 100 KB."""

UNMAPPED_NAMES = 1 << 12
"""Different names outside the name table that are counted apart: hostile input has them without end."""


@dataclass
class Origin:
    """What is known of an input besides its bytes."""

    directory: Directory
    source: int
    """Index into Directory.sources."""
    name: str = ""
    """File name without folders and without the suffixes of compression."""
    host: str = ""
    """The host or endpoint that it describes, where its folder or the user said so."""
    fallback: str = ""
    """What it is of where the input itself does not say so: who pushed it."""
    at_ns: int = 0
    """Time of the reading where the bytes carry none: from the file's name, else when it was written."""
    notes: list[str] = field(default_factory=list)
    """One line for the user about each thing that could not be read, and how often."""
    unmapped: Counter[str] = field(default_factory=Counter)
    """Readings left out, by the product's name: the name table does not have it."""

    def about(self, *labelled: str) -> str:
        """Return the host or endpoint: as the folder or the user says, else the first of what the input
        says, else the file's name without its ending: people call files by their hosts.
        """
        found = self.host or next(filter(None, labelled), "") or self.fallback
        return found or self.name.partition(".")[0] or "unknown"

    def unknown(self, name: str, count: int = 1) -> None:
        """Count readings of a name that is not in the name table; names beyond a limit are one."""
        if name not in self.unmapped and len(self.unmapped) >= UNMAPPED_NAMES:
            name = "others"
        self.unmapped[name] += count


@dataclass(frozen=True)
class Format:
    """One kind of input.

    `sure(head, name)` gets the first SNIFF_BYTES and the file's name and says how sure it is: 0 not this
    format, 1 it could be, 2 it is, 3 it is and more precisely than a wider format that also says 2. `read`
    yields tables by schema name in the order of the input; it raises nothing on bad bytes, but leaves out
    what it cannot read and says so in `origin.notes`.
    """

    kind: str
    doc: str
    sure: Callable[[bytes, str], int]
    read: Callable[[BinaryIO, Origin], Iterator[dict[str, Table]]]


class RowList:
    """Rows of one schema added one by one: for inputs of thousands of lines, never for packets."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._rows: list[tuple[Any, ...]] = []
        self._names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, **values: Any) -> None:
        """Add a row; all rows between two `take` must name the same columns in the same order."""
        if not self._rows:
            self._names = tuple(values)
        self._rows.append(tuple(values.values()))

    def take(self) -> dict[str, Table]:
        """Return the rows as a table under the schema's name, and start anew."""
        columns = zip(*self._rows, strict=True) if self._rows else ()
        table = Table(self._schema, dict(zip(self._names, map(list, columns), strict=False)))  # type: ignore[arg-type]
        self._rows = []
        return {self._schema.name: table}


def lines(stream: BinaryIO, origin: Origin) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, text without its end); bytes that are not UTF-8 are replaced.

    A line beyond LINE_BYTES is left out and noted: what is behind it is still read.
    """
    number = 0
    cut = 0
    while True:
        data = stream.readline(LINE_BYTES)
        if not data:
            break
        number += 1
        if len(data) == LINE_BYTES and not data.endswith(b"\n"):
            while data and not data.endswith(b"\n"):
                data = stream.readline(LINE_BYTES)
            cut += 1
            continue
        yield number, data.decode("utf-8", "replace").rstrip("\r\n")
    if cut:
        origin.notes.append(f"{cut} lines longer than {LINE_BYTES >> 20} MiB were left out")
