"""Counters of a case, sampled once a second: ports, processor time of the bed's processes, TCP per node.

One file a node, in Prometheus' text format with a time stamp (ms) on each line, under the names that
node_exporter and cAdvisor use. `eth0` is the node's own view of its cable, `p-<node>` the switch's: what
one sends the other receives.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from skewscope.lab.bed import network
from skewscope.lab.bed.groups import family
from skewscope.lab.bed.processes import PRIORITY, Processes
from skewscope.lab.bed.system import SWITCH, port
from skewscope.lab.bed.topology import Topology

EVERY_S = 1.0
FIELDS = (
    *(
        f"receive_{n}"
        for n in ("bytes", "packets", "errs", "drop", "fifo", "frame", "compressed", "multicast")
    ),
    *(
        f"transmit_{n}"
        for n in ("bytes", "packets", "errs", "drop", "fifo", "colls", "carrier", "compressed")
    ),
)
"""Columns of /proc/net/dev, and names of node_exporter without prefix and suffix."""
KEPT = {f"{way}_{n}" for way in ("receive", "transmit") for n in ("bytes", "packets", "errs", "drop")}
NETSTAT = {
    "RetransSegs": "node_netstat_Tcp_RetransSegs",
    "InSegs": "node_netstat_Tcp_InSegs",
    "OutSegs": "node_netstat_Tcp_OutSegs",
    "OutRsts": "node_netstat_Tcp_OutRsts",
    "TCPLossProbes": "node_netstat_TcpExt_TCPLossProbes",
    "TCPTimeouts": "node_netstat_TcpExt_TCPTimeouts",
}
GROUP = {
    "nr_periods": ("container_cpu_cfs_periods_total", 1.0),
    "nr_throttled": ("container_cpu_cfs_throttled_periods_total", 1.0),
    "throttled_time": ("container_cpu_cfs_throttled_seconds_total", 1e-9),  # version 1, ns
    "throttled_usec": ("container_cpu_cfs_throttled_seconds_total", 1e-6),  # version 2, us
}
"""Lines of a control group's cpu.stat -> cAdvisor's name, and what one unit is in its unit."""


@dataclass(frozen=True)
class Reading:
    """One value: name with labels, and the number."""

    series: str
    value: float


def interfaces(text: str, device: str) -> list[Reading]:
    """Return the counters of one interface out of the text of /proc/net/dev; none where it is not there."""
    for line in text.splitlines():
        name, colon, rest = line.partition(":")
        if colon and name.strip() == device:
            values = dict(zip(FIELDS, rest.split(), strict=False))
            return [
                Reading(f'node_network_{field}_total{{device="{device}"}}', float(value))
                for field, value in values.items()
                if field in KEPT
            ]
    return []


def group(text: str, container: str) -> list[Reading]:
    """Return the throttling counters out of the text of a control group's cpu.stat."""
    out = []
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if key in GROUP:
            name, unit = GROUP[key]
            out.append(Reading(f'{name}{{container="{container}"}}', float(value) * unit))
    return out


def processor(pids: Sequence[int], container: str) -> list[Reading]:
    """Return time on a core and time waiting for one (s) of processes together; none if one is gone."""
    ran_s = waited_s = 0.0
    try:
        for task in (t for pid in pids for t in Path(f"/proc/{pid}/task").iterdir()):
            ran, waited = (task / "schedstat").read_text(encoding="ascii").split()[:2]
            ran_s, waited_s = ran_s + int(ran) / 1e9, waited_s + int(waited) / 1e9
    except (OSError, ValueError):
        return []
    label = f'{{container="{container}"}}'
    return [
        Reading(f"container_cpu_usage_seconds_total{label}", ran_s),
        Reading(f"container_cpu_schedstat_runqueue_seconds_total{label}", waited_s),
    ]


def netstat(counters: Mapping[str, int]) -> list[Reading]:
    """Return the kernel's TCP counters of a node."""
    return [Reading(name, float(counters[key])) for key, name in NETSTAT.items() if key in counters]


def text(samples: Mapping[int, list[Reading]]) -> str:
    """Return a file's text: samples by time (ns), a series' lines together, each series typed once."""
    lines: dict[str, list[str]] = {}
    for ts_ns, readings in sorted(samples.items()):
        for one in readings:
            lines.setdefault(one.series, []).append(f"{one.series} {one.value:.15g} {ts_ns // 1_000_000}")
    out, typed = [], ""
    for series in sorted(lines):
        name = series.partition("{")[0]
        if name != typed:
            out.append(f"# TYPE {name} counter")
            typed = name
        out += lines[series]
    return "\n".join(out) + "\n" if out else ""


class Sampler:
    """Samples in a thread of its own from `start` to `stop`."""

    def __init__(
        self, processes: Processes, topology: Topology, groups: Callable[[], Mapping[str, Path]]
    ) -> None:
        self._processes, self._topology, self._groups = processes, topology, groups
        self.samples: dict[str, dict[int, list[Reading]]] = {n.name: {} for n in topology.nodes}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, with a last sample."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        # Below the workload's priority, as the captures are.
        with suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(PRIORITY - 1))
        due = time.monotonic()
        while not self._ended.is_set():
            self._sample()
            due += EVERY_S
            self._ended.wait(max(0.0, due - time.monotonic()))
        self._sample()

    def _sample(self) -> None:
        children = self._processes.children()
        switch = _read(next((f"/proc/{c.pid}/net/dev" for c in children if c.node == SWITCH), ""))
        groups = self._groups()
        for node in self._topology.nodes:
            now, found = time.time_ns(), interfaces(switch, port(node.name))
            there = [c for c in children if c.node == node.name]
            if there:
                found += interfaces(_read(f"/proc/{there[0].pid}/net/dev"), "eth0")
                found += netstat(network.tcp_counters(there[0].pid))
            for child in there:
                found += processor(family(child.pid), child.name)
                if child.name in groups:
                    found += group(_read(str(groups[child.name] / "cpu.stat")), child.name)
            self.samples[node.name][now] = found


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii") if path else ""
    except OSError:
        return ""
