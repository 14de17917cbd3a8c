"""Play a drawn scenario on a running bed: once as it is, once with its injections, on the same clock."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from skewscope.lab.bed import injector, machine, network
from skewscope.lab.bed.bed import Bed, rank_of
from skewscope.lab.bed.figures import Span
from skewscope.lab.bed.injector import Injector
from skewscope.lab.bed.scenario import Drawn, Injection

WARM_S = 1.5


@dataclass(frozen=True)
class Played:
    """What happened when: the stretch of the injection (or where it would have been) and the whole."""

    during: Span
    start_ns: int
    end_ns: int
    use: machine.Use
    how: str = ""


class Player:
    """Plays one drawn scenario on one bed."""

    def __init__(self, bed: Bed, drawn: Drawn, wait: Callable[[float], object] = time.sleep) -> None:
        self.bed, self.drawn, self._wait = bed, drawn, wait
        self._injectors: list[tuple[Injection, Injector]] = [
            (i, injector.build(bed, i.injector, i.settings)) for i in drawn.injections
        ]
        for _, one in self._injectors:
            one.prepare()

    def play(self, with_faults: bool, begin_taps: Callable[[], None] | None = None) -> Played:
        """Run the load once. The engine's noise and the clients' draws are the same every time."""
        drawn = self.drawn
        self.bed.go()
        self._wait(WARM_S)
        if begin_taps is not None:
            begin_taps()
        start_ns = time.time_ns()
        pids = self.bed.processes.real_time()
        before = machine.sample(pids)
        self._wait(drawn.lead_s)
        counted, onset_ns = self._counters(), time.time_ns()
        with ExitStack() as stack:
            if with_faults:
                for plan, one in self._injectors:
                    stack.callback(one.stop)
                    one.start(plan.strength if plan.ramp_from is None else plan.ramp_from)
                for plan, one in self._injectors:
                    if plan.ramp_from is not None:
                        injector.ramp(one, plan.ramp_from, plan.strength, plan.ramp_s, self._wait)
            self._wait(max(0.0, drawn.fault_s - (time.time_ns() - onset_ns) / 1e9))
        during = Span(onset_ns, time.time_ns(), _difference(self._counters(), counted))
        self._wait(drawn.after_s)
        end_ns = time.time_ns()
        how = "; ".join(one.how for _, one in self._injectors) if with_faults else ""
        still = set(self.bed.processes.real_time())
        after = machine.sample(p for p in pids if p in still)
        return Played(during, start_ns, end_ns, machine.use(before, after), how)

    def _counters(self) -> dict[str, Counter[str]]:
        """Return the TCP counters of every node that has a process to ask by."""
        found = {}
        for node in self.bed.topology.nodes:
            name = rank_of(node) if node.role == "rank" else node.name
            name = "client-main" if node.role == "client" else name
            if name in self.bed.processes.names():
                found[node.name] = Counter(network.tcp_counters(self.bed.processes[name].pid))
        return found


def _difference(after: dict[str, Counter[str]], before: dict[str, Counter[str]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for node, counted in after.items():
        total.update(
            {k: v - before[node][k] for k, v in counted.items()} if node in before and counted else {}
        )
    return dict(total)
