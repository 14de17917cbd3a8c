"""Run a scenario and its paired run, measure the effect, tell the truth."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from skewscope.lab.bed.truth import Fault, Truth
from skewscope.lab.sim import figures, training
from skewscope.lab.sim.compiled import kernel as k
from skewscope.lab.sim.scenario import Drawn, Signal
from skewscope.lab.sim.ticks import Ticks
from skewscope.lab.sim.vantage.emit import Emission, emit
from skewscope.lab.sim.workload import Demand
from skewscope.lab.sim.world import Run, World

LEAST_WORSE = {
    "ttft_p50": 1.05, "ttft_p95": 1.15, "gap_p50": 1.03, "gap_p95": 1.08, "gap_p99": 1.15, "step_p50": 1.03,
    "step_p99": 1.15, "batch_share": 1.5, "transfer_p50": 1.1,
}  # fmt: skip
"""Figure -> ratio to the paired run from which on it is an effect: tails vary more than medians."""
LEAST_GOODPUT = 0.95


@dataclass(frozen=True)
class Moved:
    """A signal of a scenario, with the fault and without."""

    signal: Signal
    fault: float
    paired: float
    as_said: bool


@dataclass(frozen=True)
class Case:
    """A scenario that was run, and what came of it."""

    drawn: Drawn
    run: Run
    paired: Run
    emission: Emission
    paired_emission: Emission
    effect: dict[str, float]
    moved: tuple[Moved, ...]

    @property
    def visible(self) -> bool:
        """Whether service or the statistic of a declared signal moved."""
        return self.service_moved or any(m.as_said for m in self.moved)

    @property
    def service_moved(self) -> bool:
        """Whether service got worse in any figure by more than runs differ anyway."""
        worse = any(self.effect.get(f"{name}_ratio", 1.0) >= least for name, least in LEAST_WORSE.items())
        return worse or self.effect.get("goodput_ratio", 1.0) <= LEAST_GOODPUT

    def truth(self) -> Truth:
        """Return the truth, to be written where no detector can reach it."""
        d = self.drawn
        return Truth(
            name=f"{d.name}.{d.variant}.s{d.seed}",
            source="sim",
            seed=d.seed,
            workload=f"{d.cluster.name}-{d.cluster.profile}",
            first_sample_ns=self.emission.start_ns,
            machine_busy_ratio=0.0,
            faults=(self._fault(),) if d.condition else (),
            allowed=() if d.condition else d.secondary,
            round_s=self._step_s(),
            bed={"variant": d.variant, "title": d.title, "ramp_s": d.ramp_s, "simulated": True,
                 "service_moved": self.service_moved, "paired_run": f"seed {d.seed} without its changes"},
        )  # fmt: skip

    def _step_s(self) -> float:
        took = self.paired.steps[:, k.T_END] - self.paired.steps[:, k.T_START]
        return float(np.median(took)) if len(took) else math.nan

    def _fault(self) -> Fault:
        d = self.drawn
        return Fault(
            condition=d.condition,
            culprit_kind=d.culprit_kind,
            culprit_id=d.culprit_id,
            cause_right=d.cause_right,
            onset_s=d.onset_s,
            end_s=d.end_s,
            also_right=d.also_right,
            secondary=d.secondary,
            strength=d.strength,
            effect=self.effect,
            visible_from=d.visible_from,
        )


def simulate(drawn: Drawn, taps: bool = False) -> Case:
    """Run a scenario with and without what it changes, on the same seeds; `taps`: with packets."""
    with_fault = _run(drawn, faulty=True)
    without = _run(drawn, faulty=False)
    emissions = emit(with_fault, taps), emit(without)
    tokens = Ticks(with_fault).tokens, Ticks(without).tokens
    span = drawn.onset_s, drawn.end_s
    effect = figures.ratios(
        figures.service(with_fault, tokens[0], *span), figures.service(without, tokens[1], *span)
    )
    moved = []
    for signal in drawn.signals:
        placed = replace(signal, at=entity(drawn, signal.at))
        a, b, right = figures.moved(placed, *emissions, *span)
        moved.append(Moved(placed, a, b, right))
    return Case(drawn, with_fault, without, *emissions, effect, tuple(moved))


def _run(drawn: Drawn, faulty: bool) -> Run:
    demand = drawn.demand
    if faulty and drawn.added is not None:
        demand = Demand.merged([demand, drawn.added])
    if faulty and drawn.kept[0] < 1:
        share, start, end = drawn.kept
        chance = np.random.default_rng([drawn.seed, 77]).random(len(demand))
        inside = (demand.at_s >= start) & (demand.at_s < end) & (chance > share)
        demand = demand.take(~inside)
    changes = list(drawn.changes) if faulty else []
    if drawn.cluster.pool("training"):
        run = training.run(drawn.cluster, changes, drawn.duration_s, drawn.seed)
    else:
        run = World(drawn.cluster, demand, changes, drawn.duration_s, drawn.seed, drawn.biased).run()
    if faulty:
        run.announced, run.defect = list(drawn.announced), drawn.defect
    return run


def entity(drawn: Drawn, at: str) -> str:
    """Return the entity that a signal of a scenario is read at."""
    from skewscope.lab.sim.vantage.hardware import pci

    c, p = drawn.cluster, drawn.places
    if not at.startswith("$"):
        return at
    kind, _, of = at.partition(":")
    number = p[kind][0]
    made = {
        "nic": lambda: c.nic(number),
        "netdev": lambda: f"{c.addresses[number // 8]}/rdma{number % 8}",
        "pci": lambda: pci(c, number),
        "nicpci": lambda: pci(c, number, nic=True),
        "eth0": lambda: c.front_port(number),
    }
    if of:
        return made[of]()
    if kind in ("$gpu", "$peer_gpu"):
        return c.gpu(number)
    if kind in ("$replica", "$prefill", "$others"):
        return c.endpoint(number)
    if kind == "$gateway":
        return f"{c.gateway}:8080"
    return c.addresses[number]
