"""Stages of a chain that pass micro-batches on, each at its own tap: sends without a number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.features.packet_tables import Net, at

ADDRESSES = ("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")
TRANSIT_MS, PIECE_MS = 0.02, 0.01
GLOO, NCCL_SOCKET, NCCL_ROCE = 1, 2, 3


@dataclass
class Line:
    """`count` micro-batches, `depth` of them under way; own(stage, micro-batch) and times in ms.

    pieces: messages of one micro-batch. hears: whether the first stage hears of the end of each.
    """

    own: Callable[[int, int], float]
    count: int = 60
    depth: int = 2
    stages: int = 4
    pieces: int = 1
    framing: int = NCCL_ROCE
    hears: bool = True
    nbytes: int = 8192
    start: float = 1.0
    net: Net = field(default_factory=lambda: Net([f"n{i}" for i in range(4)]))
    left: list[list[float]] = field(default_factory=list)
    """Per micro-batch and stage when its first byte went out."""

    def __post_init__(self) -> None:
        last = self.stages - 1
        flows = [
            self.net.flow(ADDRESSES[i], ADDRESSES[(i + 1) % self.stages], 50_000 + i, 4791, proto=17)
            for i in range(self.stages)
        ]
        free = [self.start] * self.stages
        ended = [self.start] * self.depth
        for n in range(self.count):
            here = ended[n % self.depth]
            out = []
            for stage in range(self.stages if self.hears else last):
                begin = max(here, free[stage]) + self.own(stage, n)
                out.append(begin)
                small = stage == last
                here = self._send(flows[stage], begin, stage, small)
                free[stage] = begin + PIECE_MS * (0 if small else self.pieces - 1)
            ended[n % self.depth] = here if self.hears else out[-1] + 1.0
            self.left.append(out)

    def _send(self, flow: int, begin: float, stage: int, small: bool) -> float:
        """Send the pieces of a micro-batch; returns when the last of them is there."""
        target = (stage + 1) % self.stages
        if self.framing == GLOO:  # announced when it is ready, sent when its receiver is
            for tap in (stage, target):
                self._put(begin + TRANSIT_MS * (tap != stage), flow, tap, kind=2, nbytes=0)
        for piece in range(1 if small else self.pieces):
            ms = begin + PIECE_MS * piece + (0.5 if self.framing == GLOO else 0.0)
            for tap in (stage, target):
                nbytes = 64 if small else self.nbytes
                self._put(ms + TRANSIT_MS * (tap != stage), flow, tap, kind=1, nbytes=nbytes)
        return ms + TRANSIT_MS

    def _put(self, ms: float, flow: int, tap: int, **more: int) -> None:
        self.net.message(ms, flow, 0, 0, tap, framing=self.framing, collective=0, end_ns=at(ms), **more)


def constant(*own: float) -> Callable[[int, int], float]:
    """Return own times that are the same for every micro-batch of a stage."""
    return lambda stage, n: own[stage]


def names(line: Line, members: Sequence[int]) -> list[int]:
    """Return the stages of address ids."""
    return [ADDRESSES.index(line.net.directory.addresses[m]) for m in members]
