"""The interfaces of one capture file as taps: each that has packets is a tap of its own."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from skewscope.core.directory import Directory, Tap
from skewscope.core.tables import Array
from skewscope.wire.formats import LINK_TYPES
from skewscope.wire.records import Interface

MAX_TAPS = 32
"""Taps of one file, each with tables of its own. The interfaces beyond share the last tap."""
NAMED = 8
"""Interfaces that a note names."""


class Taps:
    """Gives out the taps of one file, in the order in which their interfaces show packets.

    The first one exists from the start, so that files are numbered as they were given.
    """

    def __init__(self, path: Path, directory: Directory) -> None:
        self._path, self._directory = path, directory
        self.taps = [Tap(len(directory.taps), str(path), link_type=0)]
        directory.taps.append(self.taps[0])
        self._by_key: dict[tuple[int, str, int], Tap] = {}
        self._names: list[str] = []
        self._packets: Counter[int] = Counter()
        self._known: dict[int, int] = {-1: -1}
        self._unread: Counter[int] = Counter()

    def place(self, which: Array, interfaces: list[Interface]) -> tuple[int | Array, int | Array]:
        """Return tap and link type of each row: which, int64 (n,), n > 0, indexes `interfaces`.

        Single values where all rows agree. Rows of a link type that is not read, or of an interface that
        is not described (-1), get tap -1.
        """
        low, high = int(which.min()), int(which.max())
        if low == high:
            return self._tap(low, interfaces, len(which)), interfaces[low].link if low >= 0 else 0
        counts = np.bincount(which + 1)
        taps, links = np.full(len(counts), -1, dtype=np.int64), np.zeros(len(counts), dtype=np.uint16)
        for k in np.flatnonzero(counts).tolist():
            taps[k] = self._tap(k - 1, interfaces, int(counts[k]))
            links[k] = interfaces[k - 1].link if k else 0
        return taps[which + 1], links[which + 1]

    def _tap(self, k: int, interfaces: list[Interface], packets: int) -> int:
        """Return the tap of an interface, -1 where it is not read, and count its packets."""
        if k not in self._known:
            self._known[k] = self._new(interfaces[k]) if interfaces[k].link in LINK_TYPES else -1
        tap = self._known[k]
        if tap < 0:
            self._unread[interfaces[k].link if k >= 0 else -1] += packets
        else:
            self._packets[tap] += packets
        return tap

    def _new(self, one: Interface) -> int:
        """Return a tap for an interface seen for the first time.

        A later section that describes it again (same place, name and link type) continues its tap.
        """
        key = (one.number, one.name, one.link)
        if key not in self._by_key:
            if len(self._by_key) >= MAX_TAPS:
                return self.taps[-1].index
            if self._by_key:
                self.taps.append(Tap(len(self._directory.taps), str(self._path)))
                self._directory.taps.append(self.taps[-1])
            tap = self._by_key[key] = self.taps[-1]
            tap.link_type, tap.snap_length = one.link, one.snap_length
            self._names.append(one.name or f"interface {one.number}")
        return self._by_key[key].index

    def notes(self) -> list[str]:
        """Return one sentence about several taps, and one for each reason why frames were left out."""
        out = []
        if len(self.taps) > 1:
            each = [
                f"{n} ({self._packets[t.index]} packets)" for n, t in zip(self._names, self.taps, strict=True)
            ]
            more = f" and {len(each) - NAMED} more" if len(each) > NAMED else ""
            out.append(f"{len(each)} interfaces, each a tap of its own: {', '.join(each[:NAMED])}{more}")
        for link, count in sorted(self._unread.items()):
            why = f"link type {link} is not read" if link >= 0 else "their interface is not described"
            out.append(f"{count} frames were left out: {why}")
        return out
