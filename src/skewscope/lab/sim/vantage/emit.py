"""Everything that the sources of a case would deliver, as sample tables and as slices of event time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from skewscope.core.directory import Directory
from skewscope.core.features import Slice
from skewscope.core.schemas import COUNTERS, METRICS, READ
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
    tables: Mapping[str, Table]
    jobs: list[Job]
    start_ns: int

    def rows(self) -> int:
        """Return the number of rows of all tables."""
        return sum(len(t) for t in self.tables.values())


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
    parts: dict[str, list[Table]] = {s.name: [] for s in READ}
    for job in jobs:
        for name, table in job.tables(directory, start_ns).items():
            parts[name].append(table)
    parts["requests"].append(logs.requests(ticks, directory, start_ns))
    parts["events"].append(logs.events(ticks, directory, start_ns, rng[10]))
    parts["flow_records"].append(logs.flow_records(traffic, directory, addresses, start_ns, rng[11]))
    tables = taps_of.http(ticks, directory, addresses, start_ns) if taps else {}
    for schema in READ:
        whole = Table.concat(schema, parts[schema.name])
        if schema in (COUNTERS, METRICS):
            whole = whole.take(np.argsort(whole["ts_ns"], kind="stable"))
        tables[schema.name] = whole
    return Emission(directory, tables, jobs, start_ns)


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
    """Yield the samples as slices of event time, as the engine takes them."""
    last = max((int(t["ts_ns"].max()) for t in emission.tables.values() if len(t)), default=0)
    return slices([iter([Heard(dict(emission.tables), last + 1)])], emission.directory)
