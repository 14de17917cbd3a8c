"""NCCL's send and receive over sockets: a connection for each direction of each pair of ranks.

A chain of stages and an all-to-all are made of these (grouped ncclSend and ncclRecv): no tag, a message is
its size and its bytes, and what tells one from the next is the order on its connection.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from skewscope.lab.synth.nccl import MAX_PIECE_BYTES, parts
from skewscope.lab.synth.noise import rng
from skewscope.lab.synth.process import Process
from skewscope.lab.synth.tcp import Endpoint
from skewscope.wire.build import nccl_writes


class MeshMember:
    """One rank: its process, and per peer a connection out, one in, and how many messages have come."""

    def __init__(self, process: Process, rank: int, size: int, seed: int) -> None:
        self.process, self.rank, self.size = process, rank, size
        draw = rng(seed, f"payload {process.name}")
        self._filler = draw.integers(0, 256, 2 * MAX_PIECE_BYTES, dtype="uint8").tobytes()
        self._at = 0
        self._to: dict[int, Endpoint] = {}
        self._waiting = [0] * size
        self._told: list[Endpoint] = []
        self._work = 0
        self._ends: list[Endpoint] = []
        self.broken = False

    def send_to(self, peer: int, endpoint: Endpoint) -> None:
        """Use an established connection to a peer."""
        self._to[peer] = endpoint
        self._watch(endpoint)

    def receive_from(self, peer: int, endpoint: Endpoint) -> None:
        """Use an established connection from a peer."""
        self._watch(endpoint)
        endpoint.on_message = lambda message: self._arrived(peer)

    def tell(self, endpoint: Endpoint) -> None:
        """Announce the work of a step over this connection too: of the engine, not of NCCL."""
        self._told.append(endpoint)
        self._watch(endpoint)

    def hear(self, endpoint: Endpoint) -> None:
        """Hear of the work of a step over this connection."""
        self._watch(endpoint)
        endpoint.on_message = lambda message: self._heard()

    def endpoints(self) -> list[Endpoint]:
        """Return the sockets to all peers."""
        return self._ends

    def broadcast(self, tag: int, nbytes: int) -> Iterator[int | None]:
        """Wait for the work list of a step, or tell it as rank 0."""
        for endpoint in () if self.broken else self._told:
            self.process.write(endpoint, self._filler[:nbytes], nbytes)
        while self.rank and self._work < 1:
            yield None
        self._work -= 1

    def all_to_all(self, tag: int, sizes: Sequence[int]) -> Iterator[int | None]:
        """Exchange with all ranks; sizes: what each of them gets. The tag is on no wire."""
        peers = [(self.rank + i) % self.size for i in range(1, self.size)]
        for peer in peers:
            self._put(peer, sizes[peer])
        for peer in peers:
            yield from self.receive(peer, sizes[self.rank])

    def send(self, peer: int, nbytes: int) -> Iterator[int | None]:
        """Send to one rank; TCP's own window is all that holds it back."""
        self._put(peer, nbytes)
        yield from ()

    def receive(self, peer: int, nbytes: int) -> Iterator[int | None]:
        """Receive from one rank."""
        for _ in parts(nbytes):
            while self._waiting[peer] < 1:
                yield None
            self._waiting[peer] -= 1

    def _put(self, peer: int, nbytes: int) -> None:
        if self.broken:
            return
        for part in parts(nbytes):
            self._at = (self._at + 977) % MAX_PIECE_BYTES
            *first, last = nccl_writes(self._filler[self._at : self._at + part])
            for data in first:
                self.process.write(self._to[peer], data)
            self.process.write(self._to[peer], last, part)

    def _arrived(self, peer: int) -> None:
        self._waiting[peer] += 1
        self.process.poke()

    def _heard(self) -> None:
        self._work += 1
        self.process.poke()

    def _watch(self, endpoint: Endpoint) -> None:
        self._ends.append(endpoint)
        endpoint.on_close = lambda: self._lost(endpoint)

    def _lost(self, endpoint: Endpoint) -> None:
        """A peer has gone: close that connection, end the work."""
        self.broken = True
        self.process.stop()
        self.process.close(endpoint)
