"""How busy the machine was during a run, and whether others took the bed's time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from skewscope.lab.bed.network import receive_drops

MOST_STOLEN_RATIO = 0.03
MOST_WAITED_RATIO = 0.1
"""Above these a run is repeated: real-time processes of the bed waited for a core, or the host took it."""


@dataclass(frozen=True)
class Sample:
    """Readings at one moment; times in s, summed over cores or processes."""

    at_s: float
    busy_s: float
    stolen_s: float
    waited_s: float
    used_s: float
    drops: int


@dataclass(frozen=True)
class Use:
    """What a stretch of time looked like. Ratios are of all cores, `waited_ratio` is the worst process's."""

    busy_ratio: float
    stolen_ratio: float
    waited_ratio: float
    bed_ratio: float
    drops: int

    def objections(self) -> list[str]:
        """Return why a run in this stretch must not be published; empty where it may."""
        out = []
        if self.stolen_ratio > MOST_STOLEN_RATIO:
            out.append(f"the host took {self.stolen_ratio:.1%} of the machine")
        if self.waited_ratio > MOST_WAITED_RATIO:
            out.append(f"a process of the bed waited for a core {self.waited_ratio:.1%} of the time")
        if self.drops:
            out.append(f"the machine's receive backlog dropped {self.drops} frames")
        return out


def sample(pids: Iterable[int]) -> tuple[Sample, dict[int, float]]:
    """Read the machine and these processes; also return each process's wait.

    Sources: /proc/stat (ticks), /proc/<pid>/task/*/schedstat (ns on a core, ns waiting for one).
    """
    tick = os.sysconf("SC_CLK_TCK")
    words = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    user, nice, system, _, _, irq, softirq, steal = (int(w) / tick for w in words)
    waits, used = {}, 0.0
    for pid in pids:
        waits[pid] = 0.0
        with suppress(OSError):
            for task in Path(f"/proc/{pid}/task").iterdir():
                ran, waited = (task / "schedstat").read_text(encoding="ascii").split()[:2]
                waits[pid] += int(waited) / 1e9
                used += int(ran) / 1e9
    busy = user + nice + system + irq + softirq + steal
    reading = Sample(time.monotonic(), busy, steal, sum(waits.values()), used, receive_drops())
    return reading, waits


def use(before: tuple[Sample, dict[int, float]], after: tuple[Sample, dict[int, float]]) -> Use:
    """Compare two readings."""
    (a, waits_a), (b, waits_b) = before, after
    span = max(b.at_s - a.at_s, 1e-9)
    cores = os.cpu_count() or 1
    worst = max((waits_b[p] - w for p, w in waits_a.items() if p in waits_b), default=0.0)
    return Use(
        busy_ratio=(b.busy_s - a.busy_s) / span / cores,
        stolen_ratio=(b.stolen_s - a.stolen_s) / span / cores,
        waited_ratio=max(0.0, worst) / span,
        bed_ratio=max(0.0, b.used_s - a.used_s) / span / cores,
        drops=b.drops - a.drops,
    )
