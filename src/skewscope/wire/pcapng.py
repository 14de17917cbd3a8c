"""pcapng: sections, interfaces and packet blocks. Sans-IO: bytes in, record columns out.

Format: draft-ietf-opsawg-pcapng-02. Packet blocks are walked in compiled code; the few blocks that
describe something (section, interface, statistics) are parsed here. All others are passed over.
Frames are numbered as Wireshark does, which also counts journal, custom and sysdig event blocks.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from skewscope.core.tables import Array
from skewscope.wire.formats import MAX_CAPTURED, link_type
from skewscope.wire.jit import inlined, inner, njit
from skewscope.wire.load import Bytes, bytes_of, prefetch
from skewscope.wire.pcap import AHEAD_BYTES, u32
from skewscope.wire.records import (
    AT,
    CAPTURED,
    DIRECTION,
    FRAME,
    INTERFACE,
    TS,
    WIRE,
    Interface,
    Rows,
    Walk,
)

SECTION, DESCRIPTION, PACKET, SIMPLE, STATISTICS, ENHANCED = 0x0A0D0D0A, 1, 2, 3, 5, 6
JOURNAL, SYSDIG_EVENT, CUSTOM, CUSTOM_NO_COPY = 9, 0x204, 0xBAD, 0x40000BAD
MAX_BLOCK = 1 << 20
"""Longest block that is parsed: a frame of MAX_CAPTURED and generous options. Longer ones of kinds
that are passed over may have any length: they need not fit into the buffer."""
MAX_DESCRIBING = 1 << 16
"""Sections, interfaces and statistics of one file: beyond it the file is hostile."""
LIMIT_NS = 1 << 62
"""Times beyond it (the year 2116) or before 1970 are cut to the limits; `wire.times` mends them."""

NEEDS_MORE, DESCRIBES, DAMAGED, SKIPS = range(4)
"""Why the walk ended: the buffer or the rows, a block for `PcapngReader`, damage, a block to skip."""
FRAMES, LAST_TS, UNTIMED, UNEQUAL, KNOWN, TALLY = range(6)
"""Cells of the tally: frames so far, last packet's time, packets without one, blocks with unequal
lengths, interfaces described."""


PER_SECOND, MOST, DIV, MUL, DEN, OFFSET, SNAP, TRAITS = range(8)
"""Rows of the interface table, uint64 (TRAITS, interfaces), of which OFFSET holds int64 bits.

ns = ticks * MUL where ticks <= MOST, else whole seconds by PER_SECOND (0 = beyond 64 bits) and the rest
as ticks // DIV * MUL // DEN; OFFSET (ns) is added. SNAP: snap length in bytes, 0 = none.
"""


@inlined
def _time(high: int, low: int, traits: Array, i: int) -> int:
    """Return the time in ns, within 0..LIMIT_NS, of a tick count as two 32-bit halves."""
    ticks = (np.uint64(high) << np.uint64(32)) | np.uint64(low)
    if ticks <= traits[MOST, i]:
        ns = np.int64(ticks * traits[MUL, i])
    else:
        per = traits[PER_SECOND, i]
        seconds = np.uint64(0)
        if per > np.uint64(0):
            seconds = ticks // per
            ticks -= seconds * per
            if seconds > np.uint64(4_000_000_000):
                return LIMIT_NS
        ns = np.int64(ticks // traits[DIV, i] * traits[MUL, i] // traits[DEN, i])
        ns += np.int64(seconds) * 1_000_000_000
    ns += np.int64(traits[OFFSET, i])
    return min(max(int(ns), 0), LIMIT_NS)


@inner
def _flags(data: Bytes, pos: int, end: int, big: bool) -> int:
    """Return the direction bits (1 inbound, 2 outbound) from the options in [pos, end), else 0."""
    while pos + 4 <= end:
        head = u32(data, pos, big)
        code, length = (head >> 16, head & 0xFFFF) if big else (head & 0xFFFF, head >> 16)
        pos += 4
        if code == 0 or pos + length > end:
            return 0
        if code == 2 and length == 4:
            bits = u32(data, pos, big) & 3
            return int(bits) if bits < 3 else 0
        pos += (length + 3) & ~3
    return 0


@inlined
def _packet(
    data: Bytes,
    pos: int,
    total: int,
    kind: int,
    big: bool,
    base: int,
    traits: Array,
    tally: Array,
    cells: Array,
    n: int,
) -> bool:
    """Fill row n from the packet block at `pos`; returns False where its lengths contradict."""
    first = u32(data, pos + 8, big)
    which = base
    if kind == SIMPLE:
        size = first
        kept = min(size, total - 16)
        if base < tally[KNOWN] and traits[SNAP, base] > 0:
            kept = min(kept, int(np.int64(traits[SNAP, base])))
        at = pos + 12
    else:
        if kind == PACKET:  # interface and drop count share a word
            first = first >> 16 if big else first & 0xFFFF
        which = base + first
        kept, size = u32(data, pos + 20, big), u32(data, pos + 24, big)
        at = pos + 28
        if kept > total - 32:
            return False
    if kept > MAX_CAPTURED:
        return False
    known = which < tally[KNOWN]
    if kind != SIMPLE and known:
        tally[LAST_TS] = _time(u32(data, pos + 12, big), u32(data, pos + 16, big), traits, which)
    elif kind == SIMPLE:
        tally[UNTIMED] += 1
    tally[FRAMES] += 1
    cells[TS, n], cells[AT, n], cells[CAPTURED, n] = tally[LAST_TS], at, kept
    cells[WIRE, n], cells[FRAME, n] = size, tally[FRAMES]
    cells[INTERFACE, n] = which if known else -1
    options = at + ((kept + 3) & ~3)
    cells[DIRECTION, n] = 0 if kind == SIMPLE else _flags(data, options, pos + total - 4, big)
    return True


@njit
def walk_blocks(
    buf: Array,
    pos: int,
    big: bool,
    base: int,
    traits: Array,
    tally: Array,
    cells: Array,
    n: int,
    limit: int,
) -> tuple[int, int, int]:
    """Fill rows n.. from the blocks at `pos`; `base` is the first interface of the section.

    Returns (rows filled, offset of the first block not consumed, why the walk ended).
    """
    data, size = bytes_of(buf), len(buf)
    while n < limit and pos + 12 <= size:
        prefetch(data, pos + AHEAD_BYTES)
        kind, total = u32(data, pos, big), u32(data, pos + 4, big)
        if kind == SECTION:
            return n, pos, DESCRIBES
        packet = kind in (ENHANCED, PACKET, SIMPLE)
        describes = kind in (DESCRIPTION, STATISTICS)
        if total < 12 or total & 3 or ((packet or describes) and total > MAX_BLOCK):
            return n, pos, DAMAGED
        if total > MAX_BLOCK:
            tally[FRAMES] += _counts(kind)
            return n, pos, SKIPS
        if pos + total > size:
            break
        if describes:
            return n, pos, DESCRIBES
        if packet:
            if total < (16 if kind == SIMPLE else 32):
                return n, pos, DAMAGED
            if not _packet(data, pos, total, kind, big, base, traits, tally, cells, n):
                return n, pos, DAMAGED
            n += 1
        else:
            tally[FRAMES] += _counts(kind)
        tally[UNEQUAL] += u32(data, pos + total - 4, big) != total
        pos += total
    return n, pos, NEEDS_MORE


@inner
def _counts(kind: int) -> int:
    """Return 1 for blocks that are no packets but have a frame number in Wireshark."""
    return int(kind in (JOURNAL, SYSDIG_EVENT, CUSTOM, CUSTOM_NO_COPY))


def options(data: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Yield (code, value) of the options in `data`; a length beyond its end ends them."""
    pos = 0
    while pos + 4 <= len(data):
        code, length = struct.unpack_from(order + "HH", data, pos)
        pos += 4
        if code == 0 or pos + length > len(data):
            return
        yield code, data[pos : pos + length]
        pos += length + -length % 4


def _ticks(resolution: int) -> tuple[int, int, int, int, int]:
    """Return PER_SECOND, MOST, DIV, MUL and DEN for an if_tsresol byte."""
    power = resolution & 0x7F
    if resolution & 0x80:
        per = 1 << power if power < 64 else 0
        return per, 0, 1 << min(max(power - 32, 0), 63), 10**9, 1 << min(power, 32)
    mul = 10 ** max(9 - power, 0)
    per = 10**power if power < 20 else 0
    return per, LIMIT_NS // mul if power < 10 else 0, 10 ** min(max(power - 9, 0), 19), mul, 1


@dataclass
class _State:
    """What a walk changes; copied by `save`."""

    big: bool = False
    base: int = 0
    described: int = 0
    interfaces: int = 0
    tally: Array = field(default_factory=lambda: np.zeros(TALLY, dtype=np.int64))
    dropped: dict[int, int] = field(default_factory=dict)


class PcapngReader:
    """Reads a file from its first section header on: `records.Reader` for pcapng."""

    kind = "pcapng"

    def __init__(self) -> None:
        self.interfaces: list[Interface] = []
        self._state = _State()
        self._traits = np.zeros((TRAITS, 4), dtype=np.uint64)

    def save(self) -> _State:
        """Return a copy of the state."""
        s = self._state
        return replace(s, tally=s.tally.copy(), dropped=dict(s.dropped))

    def restore(self, state: _State) -> None:
        """Go back to a saved state."""
        self._state = state
        if len(self.interfaces) > state.interfaces:
            del self.interfaces[state.interfaces :]

    def walk(self, buf: Array, start: int, rows: Rows, limit: int) -> Walk:
        """Fill at most `limit` rows from the buffer."""
        n, pos = 0, start
        while True:
            s = self._state
            s.tally[KNOWN] = len(self.interfaces)
            n, pos, stop = walk_blocks(buf, pos, s.big, s.base, self._traits, s.tally, rows.cells, n, limit)
            if stop == NEEDS_MORE:
                return Walk(n, pos)
            total = int.from_bytes(buf[pos + 4 : pos + 8].tobytes(), "big" if s.big else "little")
            if stop == SKIPS:
                return Walk(n, pos, total)
            problem = "a block has impossible lengths"
            if stop == DESCRIBES:
                taken, problem = self._describe(buf, pos)
                if not problem:
                    if not taken:
                        return Walk(n, pos)
                    pos += taken
                    continue
            return Walk(n, pos, 0, f"after frame {int(s.tally[FRAMES])}: {problem}")

    def _describe(self, buf: Array, pos: int) -> tuple[int, str]:
        """Take the block at `pos`; returns (its bytes, 0 = not all there yet; what is wrong with it)."""
        head = buf[pos : pos + 12].tobytes()
        kind = int.from_bytes(head[:4], "big" if self._state.big else "little")
        if kind == SECTION:
            if head[8:] not in (b"\x1a\x2b\x3c\x4d", b"\x4d\x3c\x2b\x1a"):
                return 0, "a section header without byte order"
            self_big = head[8:] == b"\x1a\x2b\x3c\x4d"
        else:
            self_big = self._state.big
        order = ">" if self_big else "<"
        total = struct.unpack(order + "I", head[4:8])[0]
        if total > MAX_BLOCK or total < (28 if kind == SECTION else 20) or total & 3:
            return 0, "a block has impossible lengths"
        if pos + total > len(buf):
            return 0, ""
        self._state.described += 1
        if self._state.described > MAX_DESCRIBING:
            return 0, f"more than {MAX_DESCRIBING} sections, interfaces and statistics"
        body = buf[pos + 8 : pos + total - 4].tobytes()
        if kind == SECTION:
            if struct.unpack_from(order + "H", body, 4)[0] != 1:
                return 0, "a section of an unknown version of pcapng"
            self._state.big, self._state.base = self_big, len(self.interfaces)
        elif kind == DESCRIPTION:
            self._interface(body, order)
        else:
            self._statistics(body, order)
        return total, ""

    def _interface(self, body: bytes, order: str) -> None:
        link, snap = struct.unpack_from(order + "HxxI", body)
        name, resolution, offset = "", 6, 0
        for code, value in options(body[8:], order):
            if code == 2:
                name = value.rstrip(b"\0")[:64].decode("utf-8", "replace")
            elif code == 9 and len(value) == 1:
                resolution = value[0]
            elif code == 14 and len(value) == 8:
                offset = struct.unpack(order + "q", value)[0]
        i = len(self.interfaces)
        if i == self._traits.shape[1]:
            self._traits = np.concatenate([self._traits, np.zeros_like(self._traits)], axis=1)
        offset_ns = min(max(offset * 10**9, -LIMIT_NS // 2), LIMIT_NS // 2)
        self._traits[:, i] = (*_ticks(resolution), offset_ns & 0xFFFFFFFFFFFFFFFF, snap)
        self.interfaces.append(Interface(i - self._state.base, name, link_type(link), snap))
        self._state.interfaces = i + 1

    def _statistics(self, body: bytes, order: str) -> None:
        """Remember an interface's drops, by itself (5) and by the system (7), counted from its start."""
        which = self._state.base + struct.unpack_from(order + "I", body)[0]
        lost = sum(
            struct.unpack(order + "Q", value)[0]
            for code, value in options(body[12:], order)
            if code in (5, 7) and len(value) == 8
        )
        if which < len(self.interfaces):
            self._state.dropped[which] = max(lost, self._state.dropped.get(which, 0))

    def notes(self) -> list[str]:
        """Return what the file says about itself that bears on what can be seen in it."""
        out = []
        lost = sum(self._state.dropped.values())
        if lost:
            out.append(f"the capturing host dropped {lost} packets")
        untimed, unequal = int(self._state.tally[UNTIMED]), int(self._state.tally[UNEQUAL])
        if untimed:
            out.append(f"{untimed} packets carry no time: each got that of the packet before")
        if unequal:
            out.append(f"{unequal} blocks end with another length than they begin with")
        return out
