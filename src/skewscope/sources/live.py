"""A network interface as a tap: a packet ring shared with the kernel (AF_PACKET, TPACKET_V3), Linux only.

The batches are those of a capture file, and so is all that follows. A quiet interface still tells how far its
clock is, so that the others need not wait for its next packet.
"""

from __future__ import annotations

import mmap
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from skewscope.core.directory import Directory, Tap
from skewscope.core.schemas import PACKETS, ROCE
from skewscope.core.tables import Array, Heard, Table
from skewscope.wire.packets import PacketParser
from skewscope.wire.streams import StreamFramer
from skewscope.wire.tpacket import COUNT_AT, STATUS_AT, USER_OWNS, walk_block

SOL_PACKET, PACKET_RX_RING, PACKET_STATISTICS, PACKET_VERSION = 263, 5, 6, 10
"""Linux, include/uapi/linux/if_packet.h."""
TPACKET_V3 = 2
ETH_P_ALL = 0x0003
BLOCK_BYTES, BLOCKS, FRAME_BYTES = 1 << 18, 64, 2048
"""16 MiB an interface: half a second of a saturated 256 Mbit/s port, an hour of a quiet one."""
RETIRE_MS = 30
"""The kernel hands a block over after this time at the latest, however empty it is."""
LATE_NS = 150_000_000
"""No packet appears later than this after its time stamp: RETIRE_MS, and a busy machine's delays."""
STEP_NS, POLL_MS = 20_000_000, 20


class LiveError(Exception):
    """The interface cannot be read; the message is one line."""


@dataclass
class LiveStats:
    """What was seen so far. `dropped`: packets that the ring had no room for."""

    packets: int = 0
    bytes: int = 0
    first_ns: int = 0
    last_ns: int = 0
    dropped: int = 0


class LiveTap:
    """One interface; raises LiveError where it cannot be opened."""

    def __init__(self, interface: str, directory: Directory, parser: PacketParser) -> None:
        self.interface, self.stats = interface, LiveStats()
        try:
            self._socket = _open(interface)
            self._ring = mmap.mmap(self._socket.fileno(), BLOCK_BYTES * BLOCKS)
        except (OSError, AttributeError) as error:  # no AF_PACKET outside Linux
            reason = getattr(error, "strerror", None) or str(error)
            raise LiveError(f"{interface}: cannot capture: {reason}") from None
        self._bytes = np.frombuffer(self._ring, dtype=np.uint8).reshape(BLOCKS, BLOCK_BYTES)
        self.tap = Tap(len(directory.taps), interface, 1, 0)
        directory.taps.append(self.tap)
        self._parser, self._framer = parser, StreamFramer(directory)
        self._next = 0

    def batches(self, stop: Callable[[], bool]) -> Iterator[dict[str, Table]]:
        """Yield sample tables block by block until `stop()`; in silence, empty ones with the time."""
        told_ns = 0
        while not stop():
            now_ns = time.time_ns()
            if self._ready():
                tables = self._take()
                if tables is not None:
                    yield tables
                continue
            reached_ns = now_ns - LATE_NS
            if reached_ns < told_ns + STEP_NS:
                select.select([self._socket], [], [], POLL_MS / 1e3)
                continue
            told_ns = reached_ns
            yield Heard({}, reached_ns)
        rest = self._framer.finish()
        yield {**rest, "packets": PACKETS.empty(), "roce": ROCE.empty()}

    def _ready(self) -> bool:
        status = self._bytes[self._next, STATUS_AT : STATUS_AT + 4].view(np.uint32)[0]
        return bool(status & USER_OWNS)

    def _take(self) -> dict[str, Table] | None:
        """Copy the next block, give it back to the kernel, and parse the copy."""
        block = self._bytes[self._next].copy()
        self._bytes[self._next, STATUS_AT : STATUS_AT + 4] = 0
        self._next = (self._next + 1) % BLOCKS
        count = int(block[COUNT_AT : COUNT_AT + 4].view(np.uint32)[0])
        ts, at, captured, wire = (np.zeros(count, np.int64) for _ in range(4))
        n = walk_block(block, ts, at, captured, wire)
        if n == 0:
            return None
        packets, roce = self._parser.parse(
            block, ts[:n], at[:n], captured[:n], wire[:n], self.tap.index, self.stats.packets + 1
        )
        self._count(ts[:n], wire[:n])
        tables = self._framer.feed(packets, block)
        tables["packets"], tables["roce"] = packets, roce
        packets["payload_at"][:] = -1
        return tables

    def _count(self, ts: Array, wire: Array) -> None:
        s = self.stats
        s.first_ns = s.first_ns or int(ts[0])
        s.last_ns = max(s.last_ns, int(ts.max()))
        s.packets += len(ts)
        s.bytes += int(wire.sum())

    def close(self) -> None:
        """Give the ring back; the number of dropped packets is final then."""
        with self._socket:
            _, dropped, _ = struct.unpack("III", self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 12))
            self.stats.dropped += dropped
        del self._bytes
        self._ring.close()


def _open(interface: str) -> socket.socket:
    """Return a socket with its ring, bound to the interface."""
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)  # no protocol yet: nothing arrives before bind
    try:
        s.setsockopt(SOL_PACKET, PACKET_VERSION, TPACKET_V3)
        frames = BLOCK_BYTES // FRAME_BYTES * BLOCKS
        ring = struct.pack("7I", BLOCK_BYTES, BLOCKS, FRAME_BYTES, frames, RETIRE_MS, 0, 0)
        s.setsockopt(SOL_PACKET, PACKET_RX_RING, ring)
        s.bind((interface, ETH_P_ALL))
    except OSError:
        s.close()
        raise
    return s
