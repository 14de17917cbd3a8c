"""How busy the machine was during a run, and whether others took the bed's time."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from skewscope.lab.bed.network import receive_drops

MOST_STOLEN_RATIO = 0.03
MOST_WAITED_RATIO, WAITED_PER_BUSY = 0.05, 0.5
"""Above these a run is repeated: real-time processes of the bed waited for a core, or the host took it."""


@dataclass(frozen=True)
class Sample:
    """Readings at one moment; times in s, those of the machine summed over cores."""

    at_s: float
    busy_s: float
    stolen_s: float
    drops: int
    processes: Mapping[int, tuple[float, float]]
    """Process id -> time on a core, time waiting for one."""


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
        # Processes of the bed also wait for each other: the more, the busier they keep the cores themselves.
        if self.waited_ratio > MOST_WAITED_RATIO + WAITED_PER_BUSY * self.bed_ratio:
            out.append(f"a process of the bed waited for a core {self.waited_ratio:.1%} of the time")
        if self.drops:
            out.append(f"the machine's receive backlog dropped {self.drops} frames")
        return out


def sample(pids: Iterable[int]) -> Sample:
    """Read the machine and these processes; a process that is gone reads as zero.

    Sources: /proc/stat (ticks), /proc/<pid>/task/*/schedstat (ns on a core, ns waiting for one).
    """
    tick = os.sysconf("SC_CLK_TCK")
    words = Path("/proc/stat").read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]
    user, nice, system, _, _, irq, softirq, steal = (int(w) / tick for w in words)
    busy = user + nice + system + irq + softirq + steal
    return Sample(time.monotonic(), busy, steal, receive_drops(), {p: _times(p) for p in pids})


def _times(pid: int) -> tuple[float, float]:
    ran_s = waited_s = 0.0
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            ran, waited = (task / "schedstat").read_text(encoding="ascii").split()[:2]
            ran_s += int(ran) / 1e9
            waited_s += int(waited) / 1e9
    return ran_s, waited_s


def use(before: Sample, after: Sample) -> Use:
    """Compare two readings; processes that are not in both, or that ended, are left out."""
    span = max(after.at_s - before.at_s, 1e-9)
    cores = os.cpu_count() or 1
    pairs = [(before.processes[p], after.processes[p]) for p in before.processes if p in after.processes]
    return Use(
        busy_ratio=(after.busy_s - before.busy_s) / span / cores,
        stolen_ratio=(after.stolen_s - before.stolen_s) / span / cores,
        waited_ratio=max((b[1] - a[1] for a, b in pairs if b[1] >= a[1]), default=0.0) / span,
        bed_ratio=sum(b[0] - a[0] for a, b in pairs if b[0] >= a[0]) / span / cores,
        drops=after.drops - before.drops,
    )
