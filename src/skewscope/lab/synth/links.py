"""One host's link to the switch: what happens to frames between the host, its tap and the switch.

```
host -- [mtu] -- tap -- [relay: delay, jitter, reorder] -- [loss up, link down] -- switch        up
host -- tap -- [relay] -- [queue: rate limit, cross traffic] -- [loss, link down, mtu] -- switch  down
```
So a frame lost on the way up was seen by the node's own tap, one lost on the way down was not; and
the relay's delay stands in the round trips that the node's own tap measures.
"""

from __future__ import annotations

from skewscope.core.scenario import Fault
from skewscope.lab.synth.noise import Noise
from skewscope.lab.synth.schedule import SECOND, Active, Schedule, active

DROPPED = -1
FRAME_OVERHEAD_BYTES = 14
TBF_BURST_BYTES = 8_192
TBF_LATENCY_NS = 100_000_000
CROSS_LOAD = 0.95
"""Share of a port's rate that foreign packets take."""
CROSS_QUEUE_BYTES = 20 * 1_242
DEEP_QUEUE_BYTES = 256 * 1024


class Shaper:
    """A FIFO that serves `rate` bit/s after a free burst and drops what would wait too long."""

    def __init__(self, rate_bps: float, burst_bytes: int, limit_ns: int) -> None:
        self._byte_ns = 8 * SECOND / rate_bps
        self._burst_ns = int(burst_bytes * self._byte_ns)
        self._limit_ns = limit_ns
        self._finish_ns = 0

    def leave(self, now_ns: int, size: int) -> int:
        """Return when a frame of `size` bytes leaves, or DROPPED."""
        finish = max(self._finish_ns, now_ns - self._burst_ns) + int(size * self._byte_ns)
        if finish - now_ns > self._limit_ns:
            return DROPPED
        self._finish_ns = finish
        return max(finish, now_ns)


def _shaper(fault: Fault) -> Shaper:
    if fault.kind == "rate_limit":
        return Shaper(fault.strength, TBF_BURST_BYTES, TBF_LATENCY_NS)
    deep = fault.where == "deep"
    rate = fault.strength / (1.0 if deep else CROSS_LOAD)
    queue = DEEP_QUEUE_BYTES if deep else CROSS_QUEUE_BYTES
    return Shaper(rate, 0, int(queue * 8 * SECOND / rate))


class Link:
    """The way of one host's frames to and from the switch."""

    def __init__(self, schedule: Schedule, index: int, seed: int) -> None:
        self._loss = schedule.of("loss", index)
        self._down = schedule.of("link_down", index)
        self._mtu = schedule.of("mtu", index)
        self._relays = tuple(a for k in ("delay", "jitter", "reorder") for a in schedule.of(k, index))
        queued = schedule.of("rate_limit", index) + schedule.of("cross_traffic", index)
        self._shapers = tuple((a, _shaper(a.fault)) for a in queued)
        self._noise = Noise(seed, f"link {index}")
        self._last = {"up": 0, "down": 0}
        self._any = bool(self._loss or self._down or self._relays or self._shapers)
        self.plain = not self._any and not self._mtu
        """No fault ever touches this link."""

    def too_big(self, now_ns: int, size: int) -> bool:
        """Return whether the port's MTU swallows the frame, in either direction."""
        if not self._mtu:
            return False
        fault = active(self._mtu, now_ns)
        return fault is not None and size > fault.strength + FRAME_OVERHEAD_BYTES

    def up(self, now_ns: int) -> int:
        """Return when a frame seen by the tap at `now_ns` reaches the switch, or DROPPED."""
        if not self._any:
            return now_ns
        if self._lost("up", now_ns):
            return DROPPED
        return self._relay("up", now_ns)

    def down(self, now_ns: int, size: int) -> int:
        """Return when a frame at the switch at `now_ns` reaches the tap, or DROPPED."""
        if not self._any:
            return now_ns
        if self._lost("down", now_ns):
            return DROPPED
        for entry, shaper in self._shapers:
            if entry.start_ns <= now_ns < entry.end_ns:
                now_ns = shaper.leave(now_ns, size)
                if now_ns == DROPPED:
                    return DROPPED
        return self._relay("down", now_ns)

    def _lost(self, way: str, now_ns: int) -> bool:
        if self._down and active(self._down, now_ns) is not None:
            return True
        return any(
            e.start_ns <= now_ns < e.end_ns and _acts(e, way) and self._noise.next() < e.fault.strength
            for e in self._loss
        )

    def _relay(self, way: str, now_ns: int) -> int:
        """Frames keep their order but for those that overtake a reordering relay."""
        if not self._relays:
            return now_ns
        due = now_ns
        for entry in self._relays:
            if not (entry.start_ns <= now_ns < entry.end_ns and _acts(entry, way)):
                continue
            fault = entry.fault
            extra = int(fault.strength * SECOND)
            if fault.kind == "reorder" and self._noise.next() < fault.share:
                return now_ns
            due += extra if fault.kind != "jitter" else int(2 * extra * self._noise.next())
        due = max(due, self._last[way])
        if due > now_ns:
            self._last[way] = due
        return due


def _acts(entry: Active, way: str) -> bool:
    return entry.fault.where in ("both", way)
