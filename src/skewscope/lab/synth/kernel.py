"""The event loop of the synthesiser: simulated nanoseconds, events in (time, insertion) order."""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any


class Loop:
    """Runs calls at simulated times; equal times run in the order in which they were asked for."""

    __slots__ = ("_count", "_queue", "now")

    def __init__(self, start_ns: int) -> None:
        self.now = start_ns
        self._count = 0
        self._queue: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []

    def at(self, ns: int, call: Callable[..., None], *args: Any) -> None:
        """Run `call(*args)` at `ns`, or now where that has passed."""
        self._count += 1
        heappush(self._queue, (ns if ns > self.now else self.now, self._count, call, args))

    def run(self, until_ns: int) -> None:
        """Run every event before `until_ns`."""
        queue = self._queue
        while queue and queue[0][0] < until_ns:
            self.now, _, call, args = heappop(queue)
            call(*args)
        self.now = until_ns
