"""What the readers of all capture formats have in common: record columns filled batch by batch."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from skewscope.core.tables import Array

TS, AT, CAPTURED, WIRE, FRAME, INTERFACE, DIRECTION, COLUMNS = range(8)
"""Rows of `Rows.cells`."""


class Rows:
    """Columns of the records of one batch, int64, each of shape (capacity,); filled again by every walk.

    ts (ns), at (offset of the frame in the buffer), captured and wire (bytes), frame (number in the file,
    from 1), interface (index into the reader's interfaces, -1 = not described), direction (0 unknown,
    1 inbound, 2 outbound). `cells`, (COLUMNS, capacity), holds them all: kernels take one array.
    """

    def __init__(self, capacity: int) -> None:
        self.cells = np.zeros((COLUMNS, capacity), dtype=np.int64)
        self.ts, self.at, self.captured, self.wire, self.frame, self.interface, self.direction = self.cells

    def __len__(self) -> int:
        return len(self.ts)


class Interface(NamedTuple):
    """One interface of a capture: its number in its section, name, link type and snap length."""

    number: int
    name: str
    link: int
    snap_length: int


class Walk(NamedTuple):
    """How far a walk came: rows filled, offset behind the last whole record, and what stopped it.

    `skip`: bytes from `end` on that need not be read at all; `problem`: why nothing behind `end` can
    be trusted, "" where nothing is wrong.
    """

    rows: int
    end: int
    skip: int = 0
    problem: str = ""


class Reader(Protocol):
    """A capture format, sans-IO: bytes in, rows out. It never raises, whatever the bytes are."""

    kind: str
    interfaces: list[Interface]

    def walk(self, buf: Array, start: int, rows: Rows, limit: int) -> Walk:
        """Fill at most `limit` rows from uint8 `buf`, which holds the file from `start` on."""
        ...

    def save(self) -> Any:
        """Return the state before a walk, for `restore`."""
        ...

    def restore(self, state: Any) -> None:
        """Go back to a saved state: the same bytes may be walked again."""
        ...

    def notes(self) -> list[str]:
        """Return what the user should know about the file, one sentence each."""
        ...
