"""Hosts, their taps, and the switch between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from skewscope.core.scenario import BYSTANDER, CLIENT, ROUTER, Scenario
from skewscope.lab.synth.kernel import Loop
from skewscope.lab.synth.links import DROPPED, Link
from skewscope.lab.synth.noise import Noise, rng
from skewscope.lab.synth.schedule import Schedule
from skewscope.wire import build

SNAP_NODE = 114
"""Ethernet, IPv4, TCP with timestamps, and the 48 bytes of a Gloo preamble."""
SNAP_WHOLE = 262_144
STACK_NS = 1_500
"""Least time between a host's stack and its tap."""
FORWARD_NS = 200
"""Scale of the time through the switch; a heavy tail makes one in a hundred ten times as long."""
OTHERS = {"rt": ROUTER, "lg": CLIENT, "xa": BYSTANDER}
"""Hosts without a rank, and their indices."""
MAC_MARK = b"\x02SYN"
"""Every synthetic frame carries it in both addresses."""


@dataclass
class Host:
    """A machine: `index` counts nodes from 0 and is negative for the others."""

    name: str
    index: int
    address: bytes
    mac: bytes
    link: Link
    tapped: bool
    records: list[tuple[int, bytes, int]] = field(default_factory=list)
    """(time ns, frame, length on the wire) at the tap, in no particular order."""
    uptime_ms: int = 0
    next_port: int = 32_768
    last_out_ns: int = 0
    last_in_ns: int = 0

    @property
    def id(self) -> str:
        """The dotted address."""
        return ".".join(map(str, self.address))

    def port(self) -> int:
        """Return a fresh local port."""
        self.next_port = 32_768 if self.next_port > 60_000 else self.next_port + 2
        return self.next_port


class Network:
    """A switch with one link per host."""

    def __init__(self, scenario: Scenario, schedule: Schedule, loop: Loop, record_from_ns: int) -> None:
        self.loop = loop
        self._from = record_from_ns
        self._noise = Noise(scenario.seed, "network")
        self._switch_noise = Noise(scenario.seed, "switch")
        self.hosts: dict[str, Host] = {}
        w = scenario.workload
        nodes = -(-w.ranks * w.replicas // w.per_host)
        names = [f"n{i}" for i in range(nodes)] + list(OTHERS)
        kept = set(scenario.taps) or {*names[:nodes], "lg"}
        if kept - set(names):
            raise ValueError(f"scenario {scenario.name}: no such taps {sorted(kept - set(names))}")
        draw = rng(scenario.seed, "addresses")
        prefix = bytes([10, int(draw.integers(1, 255)), int(draw.integers(0, 255))])
        ends = draw.choice(253, size=len(names), replace=False) + 1
        for i, name in enumerate(names):
            index = OTHERS.get(name, i)
            self.hosts[name] = Host(
                name,
                index,
                prefix + bytes([int(ends[i])]),
                MAC_MARK + bytes([int(draw.integers(0, 256)), int(ends[i])]),
                Link(schedule, index, scenario.seed),
                name in kept,
                uptime_ms=int(draw.integers(1 << 24, 1 << 31)),
                next_port=int(draw.integers(16_384, 28_000)) * 2,
            )

    def send(
        self, src: Host, dst: Host, frame: bytes, size: int, arrive: Callable[..., None], *args: Any
    ) -> None:
        """Carry a frame; `arrive(*args)` runs at the destination's stack unless it was dropped."""
        if src is dst:
            self.loop.at(self.loop.now + STACK_NS, arrive, *args)
            return
        now = max(self.loop.now + STACK_NS + int(2_000 * self._noise.next()), src.last_out_ns + 300)
        src.last_out_ns = now
        link = src.link
        if not link.plain and link.too_big(now, size):
            return
        if src.tapped and now >= self._from:
            src.records.append((now, frame, size))
        at = now if link.plain else link.up(now)
        if at == DROPPED:
            return
        if at > now:
            self.loop.at(at, self._switch, dst, frame, size, arrive, args)
        else:
            self._forward(now, dst, frame, size, arrive, args)

    def _switch(
        self, dst: Host, frame: bytes, size: int, arrive: Callable[..., None], args: tuple[Any, ...]
    ) -> None:
        self._forward(self.loop.now, dst, frame, size, arrive, args)

    def _forward(
        self, now: int, dst: Host, frame: bytes, size: int, arrive: Callable[..., None], args: tuple[Any, ...]
    ) -> None:
        link = dst.link
        if not link.plain:
            if link.too_big(now, size):
                return
            now = link.down(now, size)
            if now == DROPPED:
                return
        at = now + FORWARD_NS + int(FORWARD_NS * self._switch_noise.next() ** -0.5)
        if at < dst.last_in_ns:
            at = dst.last_in_ns
        dst.last_in_ns = at
        if dst.tapped and at >= self._from:
            dst.records.append((at, frame, size))
        self.loop.at(at + STACK_NS, arrive, *args)

    def datagram(self, src: Host, dst: Host, sport: int, dport: int, payload: bytes) -> None:
        """Send a UDP datagram that nobody answers."""
        packet = build.ipv4(
            src.address, dst.address, 17, build.udp(src.address, dst.address, sport, dport, payload)
        )
        frame = build.ethernet(src.mac, dst.mac, packet)
        self.send(src, dst, frame, len(frame), _ignored)

    def captures(self) -> dict[str, bytes]:
        """Return the capture file of every tap: nodes cut to 114 bytes, the others whole."""
        files = {}
        for name, host in self.hosts.items():
            if host.tapped:
                snap = SNAP_NODE if host.index >= 0 else SNAP_WHOLE
                files[name] = build.capture(sorted(host.records, key=_time), snap)
        return files


def _time(record: tuple[int, bytes, int]) -> int:
    return record[0]


def _ignored() -> None:
    """Take a frame that no process waits for."""
