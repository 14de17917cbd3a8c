"""Captures at the switch ports, outside the nodes: what a DPU or a mirror port sees."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from pathlib import Path

from skewscope.lab.bed.processes import PRIORITY, ProcessError, Processes, until
from skewscope.lab.bed.system import SWITCH, port

FLUSH_S = 1.3
"""libpcap hands a block of a quiet port over after up to one second."""


@dataclass(frozen=True)
class Tap:
    """One capture: node, file, and how many bytes of each frame it keeps (0 = all)."""

    node: str
    file: Path
    snap: int


class Taps:
    """Captures that run."""

    def __init__(self, processes: Processes, snaps: dict[str, int]) -> None:
        self._processes = processes
        self.taps = [Tap(n, processes.folder / f"{n}.pcap", s) for n, s in snaps.items()]
        for tap in self.taps:
            # Below the workload's priority: starting a capture must not stall the bed.
            processes.start(_name(tap), SWITCH, _command(tap), priority=PRIORITY - 1)
        for tap in self.taps:
            out = processes.folder / f"{_name(tap)}.out"
            if not until(lambda out=out: "listening on" in out.read_text(), 10.0):  # type: ignore[misc]
                raise ProcessError(f"capture at {tap.node}: {processes.last_lines(_name(tap))}")

    def close(self) -> int:
        """End the captures; return how many frames the kernel dropped at them."""
        time.sleep(FLUSH_S)
        lost = 0
        for tap in self.taps:
            self._processes.stop(_name(tap), signal.SIGINT)
            for line in (self._processes.folder / f"{_name(tap)}.out").read_text().splitlines():
                if line.endswith("dropped by kernel"):
                    lost += int(line.split()[0])
        return lost


def _name(tap: Tap) -> str:
    return f"tap-{tap.node}"


def _command(tap: Tap) -> list[object]:
    return [
        "tcpdump", "-i", port(tap.node), "-s", tap.snap, "--time-stamp-precision=nano", "-B", 8192,
        "-Z", "root", "-n", "-w", tap.file,
    ]  # fmt: skip
