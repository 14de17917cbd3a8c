"""Synthetic captures of pipeline stages and of experts over RoCE: NCCL's send and receive.

A connection is one as in `roce_ring`: clears to send from the receiver, WRITEs with immediate data from the
sender.
In a chain each stage takes a micro-batch, works, and sends it to the next one; the last one tells the first
one the tokens, who then begins that micro-batch's next step. In an all-to-all each rank sends to all others,
and goes on once it has all of theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from skewscope.lab.synth.roce_ring import POST_NS, SLOTS, Rank, Ring, Truth, World, truth_of

TOLD_BYTES = 256
"""What the last stage of a chain tells the first one."""


@dataclass(frozen=True)
class Pattern:
    """A chain of stages, or experts that exchange all to all; `ring` holds the rest, one channel of it.

    For a chain `ring.message_bytes` is a micro-batch and a step is one of each, without a gap; for experts it
    is what all ranks get from one.
    """

    ring: Ring
    chain: bool
    work: tuple[float, ...] = ()
    """Own time of each rank over `ring.own_s`; empty = all alike."""
    micro_batches: int = 2
    """Under way at a time."""
    hot: int = -1
    """Rank that gets `hot_ratio` x its share of the rows from `hot_from` on; -1 = none."""
    hot_ratio: float = 1.0
    hot_from: int = 0


class Stage(Rank):
    """One stage of a chain."""

    def __init__(self, world: PatternWorld, index: int) -> None:
        super().__init__(world, index)
        self.pattern = world.pattern
        self._waiting = self.pattern.micro_batches if index == 0 else 0
        self._busy = False
        self._passed = 0
        self._size = world.ring.message_bytes if index < world.ring.ranks - 1 else TOLD_BYTES

    def next(self) -> None:
        """Grant all buffers, and begin where there is work at once."""
        for _ in range(SLOTS):
            self.world.loop.at(self.world.loop.now + POST_NS, self.takes[0].grant)
        self._try()

    def received(self, channel: int) -> None:
        """Take a micro-batch, and free its buffer."""
        self._waiting += 1
        self.world.loop.at(self.world.loop.now + POST_NS, self.takes[0].grant)
        self._try()

    def _try(self) -> None:
        ring, count = self.world.ring, self.pattern.micro_batches
        if self._busy or not self._waiting or self._passed == ring.steps * count:
            return
        self._busy, self._waiting = True, self._waiting - 1
        work = self.pattern.work[self.index] if self.pattern.work else 1.0
        own_ns = self.own_ns(self._passed // count, work)
        self.world.loop.at(self.world.loop.now + int(own_ns), self._send)

    def _send(self) -> None:
        self.world.begun.setdefault(self._passed, []).append((self.index, self.world.loop.now))
        self._passed += 1
        self._busy = False
        self.sends[0].offer(self._size)
        self._try()


class Expert(Rank):
    """One rank of an all-to-all; every other exchange brings the rows back."""

    def __init__(self, world: PatternWorld, index: int) -> None:
        super().__init__(world, index)
        self.pattern = world.pattern
        self._got: list[int] = [0] * world.ring.ranks
        self._round = 0

    def shares(self, step: int) -> list[float]:
        """Return the share of the rows that each rank gets in a step."""
        n, pattern = self.world.ring.ranks, self.pattern
        shares = [1 / n] * n
        if pattern.hot >= 0 and step >= pattern.hot_from:
            hot = pattern.hot_ratio / n
            shares = [(1 - hot) / (n - 1)] * n
            shares[pattern.hot] = hot
        return shares

    def next(self) -> None:
        """Begin the own time before the next exchange."""
        ring = self.world.ring
        if self._round == ring.steps * ring.collectives:
            return
        step, place = divmod(self._round, ring.collectives)
        work = self.pattern.work[self.index] if self.pattern.work else 1.0
        back = place % 2 == 1
        own_ns = self.own_ns(step, work * (ring.ranks * self.shares(step)[self.index] if back else 1.0))
        if place == 0 and step:
            own_ns += ring.gap_s * 1e9 * max(0.5, 1 + 0.02 * self._own.next())
        self.world.loop.at(self.world.loop.now + int(own_ns), self._begin)

    def _begin(self) -> None:
        world, n = self.world, self.world.ring.ranks
        world.begun.setdefault(self._round, []).append((self.index, world.loop.now))
        step, place = divmod(self._round, world.ring.collectives)
        shares = self.shares(step)
        for link in self.takes:
            world.loop.at(world.loop.now + POST_NS + self._late_ns, link.grant)
        for link in self.sends:
            assert link.receiver is not None
            to = self.index if place % 2 else link.receiver.index
            link.offer(max(8, int(world.ring.message_bytes * shares[to] / n)))
        self._round += 1
        self._go_on()

    def received(self, channel: int) -> None:
        """Take what one peer sent."""
        self._got[channel] += 1
        self._go_on()

    def _go_on(self) -> None:
        if all(got >= self._round for peer, got in enumerate(self._got) if peer != self.index):
            self.next()


class PatternWorld(World):
    """Ranks in a chain, or all connected to all."""

    def __init__(self, pattern: Pattern) -> None:
        self.pattern = pattern
        super().__init__(pattern.ring)

    def wire(self) -> list[Rank]:
        """Make the ranks and connect them."""
        n, chain = self.ring.ranks, self.pattern.chain
        ranks: list[Rank] = [Stage(self, i) if chain else Expert(self, i) for i in range(n)]
        for a in ranks:
            for turn in range(1, 2 if chain else n):
                self.connect(a, ranks[(a.index + turn) % n], a.index)
        return ranks


def write(pattern: Pattern, folder: Path) -> Truth:
    """Run a pattern and write `<host>.pcap` files to an existing or new folder; returns the truth."""
    world = PatternWorld(pattern)
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in world.run().items():
        (folder / f"{name}.pcap").write_bytes(data)
    return truth_of(world)
