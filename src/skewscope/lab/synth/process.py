"""A host's process: when it runs, how it is woken, and the programs that it executes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from skewscope.lab.synth.kernel import Loop
from skewscope.lab.synth.network import Host
from skewscope.lab.synth.noise import Noise
from skewscope.lab.synth.schedule import SECOND, Schedule, active

if TYPE_CHECKING:
    from skewscope.lab.synth.tcp import Endpoint

WAKE_NS = 14_000
"""Median time from data in the socket to the process reading it, on an unloaded host."""
FRONT_WAKE_NS = 120_000
"""The same for clients and gateways, which run an interpreter's event loop."""
HICCUP, HICCUP_NS = 2.3, 400_000
"""Beyond so many standard deviations a wake-up is late by so much more each."""
WRITE_NS = 4_500
"""Processor time of one socket write."""
NEVER = 1 << 62

Program = Iterator[int | None]
"""Yields ns to sleep, or None to wait until it is poked."""


class Process:
    """One process with one thread of execution and a queue of readable sockets."""

    def __init__(
        self, loop: Loop, host: Host, schedule: Schedule, seed: int, own_ns: int, name: str, number: int
    ) -> None:
        self.loop, self.host, self.name = loop, host, name
        self.number = number
        """Of the rank that it runs; the host's index where it runs none."""
        self._noise = Noise(seed, f"process {name}", normal=True)
        self._luck = Noise(seed, f"busy {name}")
        self._pauses = [p for a in schedule.of_rank("pause", number) for p in a.pulses()]
        self._busy = schedule.of("host_busy", host.index)
        self._own_ns = own_ns
        self._wake_median_ns = WAKE_NS if host.index >= 0 else FRONT_WAKE_NS
        self._cursor = 0
        self._readable: list[Endpoint] = []
        self._scheduled = False
        self._program: Program | None = None
        self._waiting = False
        self.dead = False

    def ready(self, ns: int) -> int:
        """Return the earliest time from `ns` on at which the process runs."""
        if self.dead:
            return NEVER
        for start, end in self._pauses:
            if start <= ns < end:
                return end
        return ns

    def late_ns(self, power: int) -> int:
        """Return how much longer a run takes to start on a busy host (0 elsewhere)."""
        if self._busy:
            fault = active(self._busy, self.loop.now)
            if fault is not None:
                return int(fault.strength * self._own_ns * self._luck.next() ** power)
        return 0

    def _wake_ns(self) -> int:
        noise = self._noise.next()
        wake = self._wake_median_ns * math.exp(0.4 * noise)
        if abs(noise) > HICCUP:
            wake += HICCUP_NS * (abs(noise) - HICCUP)
        return int(wake) + self.late_ns(8) // 10

    def notify(self, endpoint: Endpoint) -> None:
        """Tell the process that a socket has news."""
        if endpoint.queued:
            return
        endpoint.queued = True
        self._readable.append(endpoint)
        if not self._scheduled:
            self._scheduled = True
            self.loop.at(self.ready(self.loop.now + self._wake_ns()), self._read)

    def _read(self) -> None:
        self._scheduled = False
        if self.dead:
            return
        later = self.ready(self.loop.now)
        if later > self.loop.now:
            self._scheduled = True
            self.loop.at(later, self._read)
            return
        ready, self._readable = self._readable, []
        for endpoint in ready:
            endpoint.queued = False
            endpoint.read()

    def write(self, endpoint: Endpoint, data: bytes, message: object = None) -> None:
        """Write to a socket; writes of one process follow each other in time."""
        if self.dead:
            return
        self._cursor = max(self._cursor, self.loop.now) + WRITE_NS + int(700 * abs(self._noise.next()))
        self.loop.at(self._cursor, endpoint.send, data, message)

    def close(self, endpoint: Endpoint) -> None:
        """Close a socket after what was written to it."""
        self._cursor = max(self._cursor, self.loop.now) + WRITE_NS
        self.loop.at(self._cursor, endpoint.close)

    def start(self, program: Program) -> None:
        """Start the process' program."""
        self._program, self._waiting = program, False
        self.loop.at(self.loop.now, self._drive, program)

    def stop(self) -> None:
        """End the program; sockets stay."""
        self._program = None

    def poke(self) -> None:
        """Let a waiting program look again."""
        if self._waiting and self._program is not None:
            self._waiting = False
            self.loop.at(self.ready(self.loop.now + 2 * self._wake_ns()), self._drive, self._program)

    def _drive(self, program: Program) -> None:
        if program is not self._program or self.dead:
            return
        later = self.ready(self.loop.now)
        if later > self.loop.now:
            self.loop.at(later, self._drive, program)
            return
        wish = next(program, NEVER)
        if wish is None:
            self._waiting = True
        elif wish < NEVER:
            self.loop.at(self.ready(self.loop.now + wish), self._drive, program)


def seconds(value: float) -> int:
    """Return seconds as nanoseconds."""
    return int(value * SECOND)
