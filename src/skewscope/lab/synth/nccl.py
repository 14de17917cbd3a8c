"""NCCL's collectives over sockets: ring all-reduce and ring broadcast, one connection to the next rank.

A rank only ever sends to the next one and receives from the one before, over a connection that the sender
opened (net_socket.cc): size, then data. TCP's own window is all that holds a sender back. A rank passes a
piece on only after it received it, so a late rank holds up all the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from skewscope.lab.synth.noise import Noise, rng
from skewscope.lab.synth.process import Process
from skewscope.lab.synth.tcp import Endpoint
from skewscope.wire.build import nccl_writes

MAX_PIECE_BYTES = 1 << 19
"""A step of the default buffer, 4 MiB in 8."""
REDUCE_NS = 8_000
"""Time to notice a piece, add it and hand the sum to the proxy thread."""


class RingMember:
    """One rank of a ring: its process, its two connections, and how many pieces have come."""

    def __init__(self, process: Process, rank: int, size: int, seed: int) -> None:
        self.process, self.rank, self.size = process, rank, size
        self._noise = Noise(seed, f"member {process.name}", normal=True)
        draw = rng(seed, f"payload {process.name}")
        self._filler = draw.integers(0, 256, 2 * MAX_PIECE_BYTES, dtype="uint8").tobytes()
        self._at = 0
        self._next: Endpoint | None = None
        self._ends: list[Endpoint] = []
        self._received = self._taken = 0
        self.broken = False

    def send_to(self, endpoint: Endpoint) -> None:
        """Use an established connection to the next rank."""
        self._next = endpoint
        self._watch(endpoint)

    def receive_from(self, endpoint: Endpoint) -> None:
        """Use an established connection from the rank before."""
        self._watch(endpoint)
        endpoint.on_message = lambda message: self._arrived()

    def endpoints(self) -> list[Endpoint]:
        """Return the sockets to all peers."""
        return self._ends

    def all_reduce(self, tag: int, nbytes: int) -> Iterator[int | None]:
        """Run one ring all-reduce of `nbytes`; the tag is on no wire."""
        piece = max(8, -(-nbytes // self.size))
        for part in parts(piece):
            self._send(part)
            for turn in range(2 * (self.size - 1)):
                yield from self._take()
                yield int(REDUCE_NS * (1 + 0.2 * abs(self._noise.next())))
                if turn < 2 * (self.size - 1) - 1:
                    self._send(part)

    def broadcast(self, tag: int, nbytes: int) -> Iterator[int | None]:
        """Take part in one broadcast of `nbytes` from rank 0 around the ring."""
        for part in parts(nbytes):
            if self.rank:
                yield from self._take()
                yield int(REDUCE_NS * (1 + 0.2 * abs(self._noise.next())))
            if self.rank < self.size - 1:
                self._send(part)

    def _take(self) -> Iterator[int | None]:
        self._taken += 1
        while self._received < self._taken:
            yield None

    def _send(self, nbytes: int) -> None:
        if self.broken or self._next is None:
            return
        self._at = (self._at + 977) % MAX_PIECE_BYTES
        *first, last = nccl_writes(self._filler[self._at : self._at + nbytes])
        for data in first:
            self.process.write(self._next, data)
        self.process.write(self._next, last, nbytes)

    def _arrived(self) -> None:
        self._received += 1
        self.process.poke()

    def _watch(self, endpoint: Endpoint) -> None:
        self._ends.append(endpoint)
        endpoint.on_close = lambda: self._lost(endpoint)

    def _lost(self, endpoint: Endpoint) -> None:
        """A peer has gone: close that connection, end the work."""
        self.broken = True
        self.process.stop()
        self.process.close(endpoint)


def parts(nbytes: int) -> list[int]:
    """Return the sizes of the messages that carry `nbytes`."""
    whole, rest = divmod(nbytes, MAX_PIECE_BYTES)
    return [MAX_PIECE_BYTES] * whole + [rest] * (rest > 0)
