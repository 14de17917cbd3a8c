"""Traffic that is neither serving nor collective: bulk transfers and cross traffic."""

from __future__ import annotations

import math
from collections.abc import Sequence

from skewscope.lab.synth.kernel import Loop
from skewscope.lab.synth.network import Host, Network
from skewscope.lab.synth.noise import Noise
from skewscope.lab.synth.schedule import SECOND, Active, active
from skewscope.lab.synth.tcp import Endpoint

PIECE_BYTES = 8_192
MAX_BACKLOG_BYTES = 131_072
POLL_NS = 2_000_000
DATAGRAM_BYTES = 1_200


class Bulk:
    """A flow of unreadable bytes at `rate_bps`, or as fast as TCP allows where that is 0."""

    def __init__(self, loop: Loop, endpoint: Endpoint, rate_bps: float, filler: bytes) -> None:
        self._loop, self._endpoint, self._filler = loop, endpoint, filler
        self._gap_ns = int(8 * PIECE_BYTES * SECOND / rate_bps) if rate_bps else POLL_NS
        self._greedy = not rate_bps

    def run(self, start_ns: int, end_ns: int) -> None:
        """Send from `start_ns` to `end_ns`."""
        self._loop.at(start_ns, self._write, end_ns)

    def _write(self, end_ns: int) -> None:
        if self._loop.now >= end_ns:
            return
        while self._endpoint.sender.backlog() < MAX_BACKLOG_BYTES:
            self._endpoint.send(self._filler[:PIECE_BYTES])
            if not self._greedy:
                break
        self._loop.at(self._loop.now + self._gap_ns, self._write, end_ns)


class Datagrams:
    """UDP packets of constant size at random (exponential) gaps, answered by nobody."""

    def __init__(
        self, network: Network, src: Host, dst: Host, rate_bps: float, filler: bytes, noise: Noise
    ) -> None:
        self._network, self._src, self._dst = network, src, dst
        self._ports = src.port(), dst.port()
        self._payload = filler[:DATAGRAM_BYTES]
        self._gap_ns = 8 * (DATAGRAM_BYTES + 42) * SECOND / rate_bps
        self._noise = noise

    def run(self, start_ns: int, end_ns: int) -> None:
        """Send from `start_ns` to `end_ns`."""
        self._network.loop.at(start_ns, self._send, end_ns)

    def _send(self, end_ns: int) -> None:
        if self._network.loop.now >= end_ns:
            return
        self._network.datagram(self._src, self._dst, *self._ports, self._payload)
        gap_ns = -math.log(1.0 - self._noise.next()) * self._gap_ns
        self._network.loop.at(self._network.loop.now + int(gap_ns), self._send, end_ns)


class Heartbeat:
    """One small datagram every `gap_ns`; a fault holds it back for its strength, once a period."""

    PORT, SPREAD, PAYLOAD_BYTES = 9_997, 0.02, 90

    def __init__(
        self, network: Network, src: Host, dst: Host, gap_s: float, filler: bytes, noise: Noise,
        faults: Sequence[Active],
    ) -> None:  # fmt: skip
        self._network, self._src, self._dst, self._faults = network, src, dst, faults
        self._ports = src.port(), self.PORT
        self._payload, self._gap_ns, self._noise = filler[: self.PAYLOAD_BYTES], int(gap_s * SECOND), noise

    def run(self, start_ns: int, end_ns: int) -> None:
        """Beat from a random place in the first gap to `end_ns`."""
        self._network.loop.at(start_ns + int(self._noise.next() * self._gap_ns), self._beat, end_ns)

    def _beat(self, end_ns: int) -> None:
        now = self._network.loop.now
        if now >= end_ns:
            return
        fault = active(self._faults, now)
        if fault is not None:
            into = now % int(max(fault.period_s, 2 * fault.strength) * SECOND)
            if into < fault.strength * SECOND:
                self._network.loop.at(now + int(fault.strength * SECOND) - into + 1, self._beat, end_ns)
                return
        self._network.datagram(self._src, self._dst, *self._ports, self._payload)
        late = self._gap_ns * (1 + self.SPREAD * self._noise.next())
        self._network.loop.at(now + int(late), self._beat, end_ns)
