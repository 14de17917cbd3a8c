"""Which fault acts on which host at what time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from skewscope.core.scenario import FAULTS, Fault, Scenario

SECOND = 1_000_000_000


@dataclass(frozen=True)
class Active:
    """A fault with its span in absolute nanoseconds."""

    fault: Fault
    start_ns: int
    end_ns: int

    def pulses(self) -> list[tuple[int, int]]:
        """Return the [start, end) spans of a pulsed fault whose pulses last `strength` s."""
        length, period = int(self.fault.strength * SECOND), int(self.fault.period_s * SECOND)
        if period <= 0:
            return [(self.start_ns, self.start_ns + length)]
        return [(t, t + length) for t in range(self.start_ns, self.end_ns, max(period, length + 1))]


class Schedule:
    """The faults of a scenario, by kind and host."""

    def __init__(self, scenario: Scenario, start_ns: int) -> None:
        unknown = {f.kind for f in scenario.faults} - set(FAULTS)
        if unknown:
            raise ValueError(f"scenario {scenario.name}: unknown faults {sorted(unknown)}")
        self._all = [
            Active(f, start_ns + int(f.start_s * SECOND), start_ns + int(f.end_s * SECOND))
            for f in scenario.faults
        ]

    def of(self, kind: str, target: int | None = None) -> tuple[Active, ...]:
        """Return the faults of one kind, of all targets or of one."""
        return tuple(a for a in self._all if a.fault.kind == kind and target in (None, a.fault.target))

    def of_rank(self, kind: str, rank: int) -> tuple[Active, ...]:
        """Return the faults of one kind that sit on a rank (from 0) or on all ranks."""
        return self.of(kind, rank) + (self.of(kind, -1) if rank >= 0 else ())


def active(faults: Sequence[Active], now_ns: int) -> Fault | None:
    """Return the first fault that acts at `now_ns`."""
    for entry in faults:
        if entry.start_ns <= now_ns < entry.end_ns:
            return entry.fault
    return None
