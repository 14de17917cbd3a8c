"""A day of healthy event time before a fault, through the whole pipeline. Synthetic traffic.

Usage: python -m tools.long_day [--hours 24]
Every hour has a busy time of some seconds; between them nothing is sent. In the last one a rank gets
slow. Connections of the group last all day. Prints when it was found, what was told before, and memory.
"""

import argparse
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from skewscope.app import pipeline
from skewscope.core.scenario import Fault, Scenario, Workload
from skewscope.lab import synth

HOUR_S = 3600.0
VISITS, VISIT_S = 4, 1.3
"""Visits of four clients that make a busy time, and how long one takes."""

FAULT_S = 4.0
ALONE_S = 1e7
"""Thinking time: every client asks once."""


@dataclass
class Day:
    """What a run said. Times in s after the first packet."""

    hours: int
    packets: int = 0
    told: list[tuple[str, str, float, float]] = field(default_factory=list)
    """Condition, first culprit, onset and detection of every incident."""
    culprit: str = ""
    memory_mb: list[float] = field(default_factory=list)
    """Resident memory after each tenth of the input."""

    @property
    def onset_s(self) -> float:
        """When the fault begins."""
        return self.hours * HOUR_S


def scenario(hours: int) -> Scenario:
    """Return a day of `hours` hours with a straggler at its end."""
    end_s = hours * HOUR_S
    begins = [h * HOUR_S + 60.0 for h in range(hours)] + [end_s - 2 * VISIT_S]
    visits = [b + VISIT_S * k for b in begins for k in range(VISITS + 1)]
    clients = tuple(Fault("overload", at, at + 1.0, strength=5.0) for at in visits)
    slow = Fault("straggler", end_s, end_s + FAULT_S, 1, 1.6)
    work = Workload(own_s=0.02, clients=1, think_s=ALONE_S)
    return Scenario("day", "faulty", end_s + FAULT_S, 5, work, (slow, *clients))


def run(hours: int, folder: Path) -> Day:
    """Make the captures in a folder, diagnose them and return what was said."""
    truth = synth.write(scenario(hours), folder)
    day = Day(hours, culprit=truth["fault"][0]["culprit"]["id"])

    def watch(done: int, total: int) -> None:
        if done * 10 >= total * (len(day.memory_mb) + 1):
            day.memory_mb.append(_resident_mb())

    report = pipeline.run(sorted(folder.glob("*.pcap")), progress=watch)
    first = truth["first_sample_ns"]
    day.packets = sum(i.packets for i in report.inputs)
    day.told = [
        (i.condition, i.culprits[0].id, (i.onset_ns - first) / 1e9, (i.detected_ns - first) / 1e9)
        for i in report.incidents
    ]
    return day


def _resident_mb() -> float:
    """Return the resident memory of this process; Linux only."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 1e6


def lines(day: Day) -> list[str]:
    """Return what a run said, as lines of a list."""
    said = [
        f"{c} {who}, onset {onset - day.onset_s:+.2f} s, found {found - day.onset_s:+.2f} s after it began"
        for c, who, onset, found in day.told
    ]
    return [
        f"- {day.hours} h of event time, {day.packets} packets; a slow rank ({day.culprit}) at the end.",
        f"- Told: {'; '.join(said) or 'nothing'}.",
        f"- Incidents before the fault: {sum(onset < day.onset_s - 0.5 for _, _, onset, _ in day.told)}.",
        f"- Memory, each tenth of the input (MB): {', '.join(f'{m:.0f}' for m in day.memory_mb)}.",
    ]


def main(arguments: list[str]) -> int:
    """Run a day and print what was said; exit code 1 where that was not the fault alone."""
    parser = argparse.ArgumentParser(prog="python -m tools.long_day")
    parser.add_argument("--hours", type=int, default=24, help="hours before the fault")
    with tempfile.TemporaryDirectory() as folder:
        day = run(parser.parse_args(arguments).hours, Path(folder))
    print("\n".join(lines(day)))
    return 0 if [(c, who) for c, who, _, _ in day.told] == [("c20", day.culprit)] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
