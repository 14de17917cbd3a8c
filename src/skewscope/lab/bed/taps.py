"""Captures at the switch ports, outside the nodes: what a DPU or a mirror port sees."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from skewscope.lab.bed.processes import PRIORITY, ProcessError, Processes, until
from skewscope.lab.bed.system import SWITCH, port
from skewscope.wire.pcap import HEADER_BYTES, RECORD_BYTES, parse_header, walk_records

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


def cut(data: bytes, end_ns: int) -> tuple[bytes, int]:
    """Return a classic pcap file up to its last frame at or before `end_ns`, and its first time stamp (ns).

    The captures end at slightly different times; cut, they end together.
    """
    header = parse_header(data)
    if header is None or len(data) <= HEADER_BYTES:
        return data, 0
    records = np.frombuffer(data, np.uint8)[HEADER_BYTES:]
    most = len(records) // RECORD_BYTES
    ts, at, captured, wire = (np.zeros(most, np.int64) for _ in range(4))
    n, _, _ = walk_records(records, header.big_endian, header.unit_ns, ts, at, captured, wire)
    inside = np.flatnonzero(ts[:n] <= end_ns)
    if len(inside) == 0:
        return data[:HEADER_BYTES], 0
    last = int(inside[-1])
    return data[: HEADER_BYTES + int(at[last] + captured[last])], int(ts[:n].min())
