"""Gloo's collectives over TCP, message for message: ring all-reduce and binomial broadcast.

The loops follow gloo/allreduce.cc (ring), gloo/broadcast.cc and gloo/transport/tcp/pair.cc: a
receive announces itself to the sender (opcode 3), a send to the receiver (opcode 2), and data (opcode
1) leaves once both are known. Two pieces are under way at a time, and a rank passes a piece on only
after it received it: a late rank holds up all the others, and so does one that stops in the middle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from skewscope.core.tables import Array
from skewscope.lab.synth.noise import Noise, rng
from skewscope.lab.synth.process import Process
from skewscope.lab.synth.tcp import Endpoint
from skewscope.wire.build import gloo_preamble

DATA, SEND_READY, RECV_READY = 1, 2, 3
PLAIN, ALL_REDUCE, BROADCAST, ALL_TO_ALL = 0, 4, 6, 8
MAX_SEGMENT_BYTES = 1 << 20
REDUCE_NS = 12_000
"""Time to wake up and add one piece."""


class Message(NamedTuple):
    """A Gloo message as its receiver sees it."""

    opcode: int
    prefix: int
    tag: int


class _Pair:
    """What one rank knows of one peer: who waits for whom, per (prefix, tag)."""

    __slots__ = ("endpoint", "peer_waits", "unsent")

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.peer_waits: dict[tuple[int, int], int] = {}
        self.unsent: dict[tuple[int, int], list[int]] = {}


class Member:
    """One rank of a group: its process, its pairs, and the collective that it is in."""

    def __init__(self, process: Process, rank: int, size: int, seed: int, opaque: bool) -> None:
        self.process, self.rank, self.size = process, rank, size
        self._pairs: dict[int, _Pair] = {}
        self._received = self._sent = 0
        self._noise = Noise(seed, f"member {process.name}", normal=True)
        self._opaque = opaque
        draw = rng(seed, f"payload {process.name}")
        self._bytes: Array = draw.integers(0, 256, 1 << 21, dtype="uint8")
        self._filler = self._bytes.tobytes()
        self._at = 0
        self.broken = False

    def attach(self, peer: int, endpoint: Endpoint) -> None:
        """Use an established connection to a peer."""
        pair = _Pair(endpoint)
        self._pairs[peer] = pair
        endpoint.on_message = lambda message: self._arrived(pair, message)
        endpoint.on_close = lambda: self._lost(pair)

    def endpoints(self) -> list[Endpoint]:
        """Return the sockets to all peers."""
        return [p.endpoint for p in self._pairs.values()]

    def all_reduce(self, tag: int, nbytes: int) -> Iterator[int | None]:
        """Run one ring all-reduce of `nbytes`."""
        n = self.size
        pieces = max(-(-nbytes // MAX_SEGMENT_BYTES), 2 * n)
        pieces = -(-pieces // n) * n
        piece = max(4, -(-nbytes // pieces))
        left, right = (self.rank - 1) % n, (self.rank + 1) % n
        for _ in ("reduce-scatter", "all-gather"):
            self._received = self._sent = 0
            under_way = pieces - pieces // n  # the last rank's share needs no message
            for i in range(under_way + 2):
                while i >= 2 and (self._received < i - 1 or self._sent < i - 1):
                    yield None
                if i >= 2:
                    yield int(REDUCE_NS * (1 + 0.2 * abs(self._noise.next())))
                if i < under_way:
                    self._receive(right, ALL_REDUCE, tag, piece)
                    self._send(left, ALL_REDUCE, tag, piece)

    def broadcast(self, tag: int, nbytes: int) -> Iterator[int | None]:
        """Take part in one broadcast of `nbytes` from rank 0 along a binomial tree."""
        self._received = self._sent = 0
        sends = 0
        mask = (1 << max(1, (self.size - 1).bit_length())) - 1
        bit = 1
        while bit <= mask:
            mask_above = mask & ~(2 * bit - 1)
            if not self.rank & mask_above:
                peer = self.rank ^ bit
                if peer < self.size and not self.rank & bit:
                    self._send(peer, BROADCAST, tag, nbytes)
                    sends += 1
                elif peer < self.size:
                    self._receive(peer, BROADCAST, tag, nbytes)
                    while self._received < 1:
                        yield None
            bit <<= 1
        while self._sent < sends:
            yield None

    def all_to_all(self, tag: int, sizes: Sequence[int]) -> Iterator[int | None]:
        """Exchange with all ranks; sizes: what each of them gets (gloo/alltoallv.cc)."""
        self._received = self._sent = 0
        peers = [(self.rank + i) % self.size for i in range(1, self.size)]
        for peer in peers:
            self._receive(peer, ALL_TO_ALL, tag, sizes[self.rank])
        for peer in peers:
            self._send(peer, ALL_TO_ALL, tag, sizes[peer])
        while self._received < len(peers) or self._sent < len(peers):
            yield None

    def send(self, peer: int, nbytes: int) -> Iterator[int | None]:
        """Send to one rank; such messages carry tag 0, whatever their number."""
        self._sent = 0
        self._send(peer, PLAIN, 0, nbytes)
        while self._sent < 1:
            yield None

    def receive(self, peer: int, nbytes: int) -> Iterator[int | None]:
        """Receive from one rank."""
        self._received = 0
        self._receive(peer, PLAIN, 0, nbytes)
        while self._received < 1:
            yield None

    def _send(self, peer: int, prefix: int, tag: int, nbytes: int) -> None:
        pair, slot = self._pairs[peer], (prefix, tag)
        self._write(pair, SEND_READY, slot, nbytes)
        if pair.peer_waits.get(slot, 0) > 0:
            pair.peer_waits[slot] -= 1
            self._write(pair, DATA, slot, nbytes)
            self._sent += 1
        else:
            pair.unsent.setdefault(slot, []).append(nbytes)

    def _receive(self, peer: int, prefix: int, tag: int, nbytes: int) -> None:
        self._write(self._pairs[peer], RECV_READY, (prefix, tag), nbytes)

    def _arrived(self, pair: _Pair, message: object) -> None:
        assert isinstance(message, Message)
        slot = message.prefix, message.tag
        if message.opcode == DATA:
            self._received += 1
            self.process.poke()
        elif message.opcode == RECV_READY:
            waiting = pair.unsent.get(slot)
            if waiting:
                nbytes = waiting.pop(0)
                if not waiting:
                    del pair.unsent[slot]
                self._write(pair, DATA, slot, nbytes)
                self._sent += 1
                self.process.poke()
            else:
                if len(pair.peer_waits) > 64:
                    pair.peer_waits = {s: c for s, c in pair.peer_waits.items() if c}
                pair.peer_waits[slot] = pair.peer_waits.get(slot, 0) + 1

    def _write(self, pair: _Pair, opcode: int, slot: tuple[int, int], nbytes: int) -> None:
        if self.broken:
            return
        body = nbytes if opcode == DATA else 0
        data = gloo_preamble(body, opcode, *slot, nbytes)
        if body or self._opaque:
            start = self._at = (self._at + 977) % (1 << 20)
            filler = self._filler[start : start + body + 48]
            while len(filler) < body + 48:
                filler += self._filler
            data = filler[: body + 48] if self._opaque else data + filler[:body]
        self.process.write(pair.endpoint, data, Message(opcode, *slot))

    def _lost(self, pair: _Pair) -> None:
        """A peer has gone: close that connection, end the work."""
        self.broken = True
        self.process.stop()
        self.process.close(pair.endpoint)
