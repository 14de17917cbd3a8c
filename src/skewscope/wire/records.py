"""What the readers of all capture formats have in common: record columns filled batch by batch."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from skewscope.core.tables import Array


class Rows:
    """Columns of the records of one batch, each of shape (capacity,); filled again by every walk.

    ts int64 (ns), at int64 (offset of the frame in the buffer), captured and wire int64 (bytes),
    frame int64 (number in the file, from 1), interface int32 (index into the reader's interfaces,
    -1 = not described), direction uint8 (0 unknown, 1 inbound, 2 outbound).
    """

    def __init__(self, capacity: int) -> None:
        self.ts, self.at, self.captured, self.wire, self.frame = (
            np.zeros(capacity, dtype=np.int64) for _ in range(5)
        )
        self.interface = np.zeros(capacity, dtype=np.int32)
        self.direction = np.zeros(capacity, dtype=np.uint8)

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
