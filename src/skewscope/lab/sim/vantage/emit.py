"""Everything that the sources of a case would deliver, as sample tables and as slices of event time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skewscope.core.directory import Directory
from skewscope.core.features import Slice
from skewscope.core.schemas import SAMPLES
from skewscope.core.tables import Heard, Table
from skewscope.engine.slices import slices
from skewscope.lab.sim.ticks import TICK_S, Ticks
from skewscope.lab.sim.vantage import engines, hardware, hosts, logs
from skewscope.lab.sim.vantage import taps as taps_of
from skewscope.lab.sim.vantage.job import Job
from skewscope.lab.sim.vantage.traffic import Traffic
from skewscope.lab.sim.world import Run

START_NS = 1_800_000_000_000_000_000
"""Event time of a run's beginning, but for the seed's part: 2027-01-15."""


@dataclass
class Emission:
    """The samples of one run."""

    directory: Directory
    parts: list[dict[str, Table]]
    """What each job, log or tap delivers, in its own order."""
    jobs: list[Job]
    start_ns: int

    @cached_property
    def tables(self) -> Mapping[str, Table]:
        """All rows by schema name; counters, metrics and what taps see in event-time order."""
        out = {}
        for schema in SAMPLES:
            found = [p[schema.name] for p in self.parts if schema.name in p]
            if not found:
                continue
            whole = Table.concat(schema, found)
            if len(found) > 1:
                whole = whole.take(np.argsort(whole["ts_ns"], kind="stable"))
            out[schema.name] = whole
        return out

    def rows(self) -> int:
        """Return the number of rows of all tables."""
        return sum(len(t) for p in self.parts for t in p.values())


def emit(run: Run, taps: bool = False) -> Emission:
    """Return what every vantage point of a run sees; `taps`: also the packets at front-end ports."""
    ticks = Ticks(run)
    traffic = Traffic(ticks)
    directory = Directory()
    cluster = run.cluster
    known = [*cluster.addresses, cluster.gateway, *cluster.clients, logs.REGISTRY, logs.STRANGER]
    addresses = {a: n + 1 for n, a in enumerate(known)}
    directory.addresses += known
    key = run.streams.noise_key
    start_ns = START_NS + key % 86_400 * 10**9
    rng = [np.random.default_rng([key, 100 + n]) for n in range(12)]
    errors = hardware.Errors(traffic, rng[0])
    jobs = [
        hardware.rdma(traffic, errors, rng[1]),
        hardware.devices(traffic, errors, rng[2]),
        hardware.slots(traffic, rng[3]),
        hosts.gpus(traffic, rng[4]),
        hosts.nodes(traffic, rng[5]),
        hosts.ports(traffic, rng[6]),
    ]
    if len(cluster.pool("training")) < len(cluster.replicas):
        jobs.append(engines.gateway(ticks, rng[7]))
    for number, product in enumerate(("vllm", "sglang")):
        job = engines.engines(ticks, product, rng[8 + number])
        jobs += [job] if job else []
    _set_clocks(jobs[:6], ticks)
    _spoil(jobs, run.defect, rng[0])
    parts: list[dict[str, Table]] = [job.tables(directory, start_ns) for job in jobs]
    parts.append({"requests": logs.requests(ticks, directory, start_ns)})
    parts.append({"events": logs.events(ticks, directory, start_ns, rng[10])})
    parts.append({"flow_records": logs.flow_records(traffic, directory, addresses, start_ns, rng[11])})
    if taps:
        parts.append(taps_of.http(ticks, directory, addresses, start_ns))
    return Emission(directory, parts, jobs, start_ns)


def _spoil(jobs: list[Job], defect: str, rng: np.random.Generator) -> None:
    """Leave out what a recording that begins late, ends early or loses scrapes has not."""
    for job in jobs:
        share = job.times_s / job.times_s.max()
        if defect == "begins_late":
            job.kept &= share > 0.4
        elif defect == "ends_early":
            job.kept &= share < 0.6
        elif defect == "lossy":
            job.kept &= (rng.random((len(job.times_s), 1)) > 0.25) & ((share < 0.5) | (share > 0.6))


def _set_clocks(jobs: list[Job], ticks: Ticks) -> None:
    """Stamp what agents on the hosts read by the hosts' own clocks; Prometheus stamps engines by its own."""
    step = ticks.knob("clock_step_s")
    if not step.any():
        return
    host = {a: n for n, a in enumerate(ticks.run.cluster.addresses)}
    for job in jobs:
        at = np.clip((job.times_s / TICK_S).astype(np.int64), 0, ticks.count - 1)
        of = np.array([host[t] for t in job.targets])
        job.ahead_s = np.take_along_axis(step[:, of], at, axis=0)


def sliced(emission: Emission) -> Iterator[Slice]:
    """Yield the samples as slices of event time, as the engine takes them; each part is a tap of its own."""
    stamps = [t["ts_ns"] for p in emission.parts for t in p.values() if len(t)]
    last = max((int(ts.max()) for ts in stamps), default=0)
    taps = [iter([Heard(part, last + 1)]) for part in emission.parts]
    return slices(taps, emission.directory)
