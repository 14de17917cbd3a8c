"""Which packets stand behind the numbers of a scope: the frames seen of it up to a decision.

A share, a median or a count is a number over many packets. Each gets the frames that it was measured from:
those of its scope since the onset, as far back as the last second is kept, at the taps that saw most of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np

from skewscope.core.directory import Directory
from skewscope.core.features import Slice
from skewscope.core.report import FrameSpan
from skewscope.core.tables import Array

KEPT_NS = 1_000_000_000
"""Features look back a second at most for what they count (losses), a window for all else."""

KEPT_ROWS = 1 << 21
"""Rows kept at most, 30 bytes each: at line rate that is less than a second."""

COLUMNS = ("ts_ns", "tap", "frame", "src", "dst", "sport", "dport")


class Sight:
    """The packets of the last second, and the last packet of each address."""

    def __init__(self) -> None:
        self._recent: deque[dict[str, Array]] = deque()
        self._rows = 0
        self._last = np.zeros((0, 2), dtype=np.int64)
        """Tap and frame of the last packet from or to each address id; frame 0 = none."""
        self._ids: dict[str, int] = {}
        self._answers: dict[tuple[str, int], list[FrameSpan]] = {}

    def note(self, slice_: Slice) -> None:
        """Absorb a slice: from now on its packets are the newest."""
        self._answers.clear()
        packets = slice_.tables.get("packets")
        if packets is not None and len(packets):
            self._recent.append({name: packets[name] for name in COLUMNS})
            self._rows += len(packets)
            self._remember(packets["src"], packets["dst"], packets["tap"], packets["frame"])
        while self._recent and (
            self._rows > KEPT_ROWS or self._recent[0]["ts_ns"][-1] < slice_.end_ns - KEPT_NS
        ):
            if len(self._recent) == 1 and self._rows > KEPT_ROWS:
                break  # a slice is one tick: it is never cut
            self._rows -= len(self._recent.popleft()["ts_ns"])

    def _remember(self, src: Array, dst: Array, tap: Array, frame: Array) -> None:
        top = int(max(src.max(), dst.max())) + 1
        if top > len(self._last):
            grown = np.zeros((max(top, 2 * len(self._last)), 2), dtype=np.int64)
            grown[: len(self._last)] = self._last
            self._last = grown
        for end in (src, dst):
            self._last[end, 0] = tap
            self._last[end, 1] = frame

    def spans(self, key: str, since_ns: int, directory: Directory) -> list[FrameSpan]:
        """Return the frames of a scope since `since_ns`; where none is kept, the last one before.

        `key` is the scope's canonical id: an address, `address:port` or `address->address`.
        """
        known = self._answers.get((key, since_ns))
        if known is None:
            known = self._answers[key, since_ns] = self._spans(key, since_ns, directory)
        return known

    def _spans(self, key: str, since_ns: int, directory: Directory) -> list[FrameSpan]:
        ends = [self._end(text, directory) for text in key.split("->")]
        if any(address == 0 for address, _, _ in ends):
            return []
        seen: dict[int, list[int]] = {}
        for part in self._recent:
            _count(seen, part, _of(part, ends) & (part["ts_ns"] >= since_ns))
        text = " && ".join(filter_ for _, _, filter_ in ends if filter_)
        # What lies between two hosts shows at the tap of each; all else at the one that saw most.
        taps = sorted(seen, key=lambda tap: (-seen[tap][2], tap))[: len(ends)]
        if taps:
            return [_span(directory, tap, seen[tap], text) for tap in sorted(taps)]
        tap, frame = max((self._last[a].tolist() for a, _, _ in ends if a < len(self._last)), default=(0, 0))
        return [_span(directory, tap, [frame, frame, 1], text)] if frame else []

    def _end(self, text: str, directory: Directory) -> tuple[int, int, str]:
        """Return address id (0 = not known), port (0 = any) and Wireshark's display filter of one end."""
        address, port = text, 0
        if self._id(text, directory) == 0:
            address, _, digits = text.rpartition(":")
            address, port = address.strip("[]"), int(digits) if digits.isdecimal() else 0
        number = self._id(address, directory)
        if address.startswith("lid "):
            return number, port, ""  # no field of Wireshark's names both ends of a local route header
        field = "ipv6.addr" if ":" in address else "ip.addr"
        return number, port, f"{field} == {address}" + (f" && tcp.port == {port}" if port else "")

    def _id(self, address: str, directory: Directory) -> int:
        if address not in self._ids:
            for number in range(len(self._ids), len(directory.addresses)):
                self._ids.setdefault(directory.addresses[number], number)
        return self._ids.get(address, 0)


def _of(part: Mapping[str, Array], ends: list[tuple[int, int, str]]) -> Array:
    """Return which rows belong to the scope: from or to each of its ends."""
    mine = np.ones(len(part["src"]), dtype=np.bool_)
    for address, port, _ in ends:
        out, into = part["src"] == address, part["dst"] == address
        if port:
            out, into = out & (part["sport"] == port), into & (part["dport"] == port)
        mine &= out | into
    return mine


def _span(directory: Directory, tap: int, seen: list[int], text: str) -> FrameSpan:
    first, last, packets = seen
    return FrameSpan(directory.taps[tap].path, first, last, packets, text)


def _count(seen: dict[int, list[int]], part: Mapping[str, Array], mine: Array) -> None:
    """Add rows to [first frame, last frame, packets] of each tap."""
    for tap in np.unique(part["tap"][mine]).tolist():
        frames = part["frame"][mine & (part["tap"] == tap)]
        low, high = int(frames.min()), int(frames.max())
        if tap in seen:
            first, last, packets = seen[tap]
            seen[tap] = [min(low, first), max(high, last), packets + len(frames)]
        else:
            seen[tap] = [low, high, len(frames)]
