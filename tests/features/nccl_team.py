"""A ring of hosts that talks as NCCL over RoCE does, each at its own tap: messages without a tag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.features.packet_tables import Net, at

ADDRESSES = ("10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")
TRANSIT_MS, REDUCE_MS, LASTS_MS = 0.005, 0.003, 0.004
"""From tap to tap, to add a piece, and of a message from first to last byte."""


@dataclass
class Team:
    """Steps of `collectives` ring all-reduces, then a gap; times in ms, `late_*` per member.

    late_sender: more own time before each collective; late_receiver: grants later; frozen: (step,
    collective, member, ms) stops once in the middle of a collective. offset: of the taps' clocks.
    """

    steps: int = 60
    collectives: int = 3
    own: float = 0.3
    gap: float = 5.0
    bytes: int = 4096
    members: int = 4
    late_sender: Mapping[int, float] = field(default_factory=dict)
    late_receiver: Mapping[int, float] = field(default_factory=dict)
    from_step: int = 0
    frozen: tuple[int, int, int, float] | None = None
    offset: Mapping[int, float] = field(default_factory=dict)
    lost: frozenset[tuple[int, int, int]] = frozenset()
    """(step, sender, message of the step) that no tap saw."""
    net: Net = field(default_factory=lambda: Net([f"n{i}" for i in range(4)]))
    begun: list[list[float]] = field(default_factory=list)
    """Per step and member the time of its first message out."""

    def __post_init__(self) -> None:
        count = self.members
        names = ADDRESSES[:count]
        pairs = [(i, (i + 1) % count) for i in range(count)]
        self._data = {p: self._flow(names[p[0]], names[p[1]], 50_000 + p[0]) for p in pairs}
        self._clear = {p: self._flow(names[p[1]], names[p[0]], 51_000 + p[0]) for p in pairs}
        ready = [1.0] * count
        for step in range(self.steps):
            self.begun.append([])
            for collective in range(self.collectives):
                ready = self._collective(step, collective, ready)
            ready = [ms + self.gap for ms in ready]

    def _flow(self, a: str, b: str, port: int) -> int:
        return self.net.flow(a, b, port, 4791, proto=17)

    def _collective(self, step: int, collective: int, ready: list[float]) -> list[float]:
        count = self.members
        on = step >= self.from_step
        begin = [ms + self.own + (self.late_sender.get(i, 0.0) if on else 0.0) for i, ms in enumerate(ready)]
        grant = [begin[i] + (self.late_receiver.get(i, 0.0) if on else 0.0) for i in range(count)]
        rounds = 2 * (count - 1)
        for i in range(count):  # the receiver, to the one before it
            pair = ((i - 1) % count, i)
            for n in range(rounds):
                self._put(self._clear[pair], grant[i] + n * 1e-4, i, pair[0], kind=3, nbytes=64)
        can = list(begin)
        for n in range(rounds):
            end = [0.0] * count
            for i in range(count):
                after = (i + 1) % count
                sent = max(can[i], grant[after] + TRANSIT_MS + 0.001 * (n + 1))
                if self.frozen and self.frozen[:3] == (step, collective, i) and n == 2:
                    sent += self.frozen[3]
                if collective == 0 and n == 0:
                    self.begun[step].append(sent)
                end[after] = sent + TRANSIT_MS + LASTS_MS
                if (step, i, collective * rounds + n) not in self.lost:
                    self._put(self._data[i, after], sent, i, after, kind=0, nbytes=self.bytes)
                else:
                    self.net.hole(sent, self._data[i, after], tap=i)
                    self.net.hole(sent, self._data[i, after], tap=after)
            can = [max(can[i], end[i]) + REDUCE_MS for i in range(count)]
        return can

    def _put(self, flow: int, ms: float, source: int, target: int, **more: int) -> None:
        lasts = LASTS_MS if more["kind"] == 0 else 0.0
        for tap, when in ((source, ms), (target, ms + TRANSIT_MS)):
            when += self.offset.get(tap, 0.0)
            last = {"end_ns": at(when + lasts)}
            self.net.message(when, flow, 0, 0, tap, framing=3, collective=0, **last, **more)
