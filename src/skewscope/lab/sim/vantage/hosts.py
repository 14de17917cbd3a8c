"""GPUs by the DCGM exporter and hosts by node_exporter, as Prometheus scrapes them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from skewscope.core.tables import Array
from skewscope.lab.sim.cluster import GPUS
from skewscope.lab.sim.compiled import kernel as k
from skewscope.lab.sim.params import load
from skewscope.lab.sim.ticks import TICK_S
from skewscope.lab.sim.vantage.job import Job
from skewscope.lab.sim.vantage.traffic import SEGMENT_BYTES, Traffic

PROFILED = (
    "gpu.engine_active_ratio", "gpu.tensor_active_ratio", "gpu.dram_active_ratio", "pcie.rx_bytes_per_s",
    "pcie.tx_bytes_per_s", "gpu.nvlink_tx_bytes_per_s", "gpu.nvlink_rx_bytes_per_s",
)  # fmt: skip
"""Fields read from profiling counters: blank while another profiler holds them."""


def gpus(traffic: Traffic, rng: np.random.Generator) -> Job:
    """Return the job that scrapes DCGM exporters."""
    t, cluster = traffic.ticks, traffic.ticks.run.cluster
    numbers = range(cluster.hosts * GPUS)
    targets = [cluster.addresses[g // GPUS] for g in numbers]
    job = Job("dcgm_exporter", [cluster.gpu(g) for g in numbers], targets, t.run.duration_s, rng)
    params = load()["gpu"]
    in_step = np.minimum(t.to_gpus(t.length_s) / TICK_S, 1)
    kernels = np.minimum(t.kernels_s / TICK_S, in_step)
    # A rank that waits for its peers spins in the collective's kernel: its GPU looks as busy as the others.
    waiting = np.clip(in_step - t.own_s / TICK_S, 0, 1)
    active = np.clip(kernels + waiting, 0, 1)
    prefill = _part_of_prefill(traffic)
    clock = t.knob("gpu_clock_ratio")
    tensor = kernels * (0.55 * prefill + 0.06 * (1 - prefill))
    dram = kernels * (0.25 * prefill + 0.70 * (1 - prefill)) * (0.5 + 0.5 * _work_share(traffic))
    power = (
        params["idle_w"]
        + (params["limit_w"] - params["idle_w"])
        * (0.15 * active + 0.45 * tensor / 0.55 + 0.4 * dram / 0.7)
        * np.clip(clock, 0.2, 1) ** 2
    )
    bits = t.knob("gpu_throttle_bits")
    job.gauge("gpu.sm_clock_hz", params["clock_mhz"] * 1e6 * clock, 0.002, 15e6)
    job.gauge("gpu.power_w", power, 0.03)
    job.gauge(
        "gpu.temperature", 32 + 42 * _slow(power, 80) / params["limit_w"] + t.knob("gpu_hot_c"), 0.01, 1.0
    )
    job.mean("gpu.utilization_ratio", (active > 0.02).astype(float))
    job.mean("gpu.engine_active_ratio", active, 0.01)
    job.mean("gpu.tensor_active_ratio", tensor, 0.02)
    job.mean("gpu.dram_active_ratio", dram, 0.02)
    job.mean("pcie.rx_bytes_per_s", traffic.slot_rx / TICK_S, 0.02)
    job.mean("pcie.tx_bytes_per_s", traffic.slot_tx / TICK_S, 0.02)
    job.mean("gpu.nvlink_tx_bytes_per_s", traffic.nvlink_seen / TICK_S, 0.02)
    job.mean("gpu.nvlink_rx_bytes_per_s", traffic.nvlink_seen / TICK_S, 0.02)
    job.counter("pcie.replays", rng.poisson(t.knob("pcie_aer_per_s") * TICK_S).astype(float), start=12)
    job.gauge("gpu.last_xid", np.maximum.accumulate(t.knob("gpu_xid"), axis=0))
    idle = np.where(active < 0.02, 1.0, 0.0)
    job.gauge("gpu.clock_event_reasons", np.where(bits > 0, bits, idle))
    job.counter("gpu.ecc_sbe_volatile", rng.poisson(t.knob("gpu_ecc_per_s") * TICK_S).astype(float), start=2)
    job.gauge("gpu.memory_used_bytes", np.full(active.shape, 72.0 * 2**30), 0.0)
    held = np.take_along_axis(
        t.knob("profiler"), np.clip((job.times_s / TICK_S).astype(int), 0, t.count - 1), axis=0
    )
    for number, c in enumerate(job.columns):
        # DCGM answers a field that it could not read with a huge number; a source makes it "not known".
        blank = (
            rng.random(c.values.shape) < 0.0005
            if c.name == "gpu.ecc_sbe_volatile"
            else np.zeros(c.values.shape, bool)
        )
        if c.name in PROFILED:
            blank |= held > 0
        if blank.any():
            raw, values = (np.where(blank, np.nan, v) for v in (c.raw, c.values))
            job.columns[number] = replace(c, raw=raw, values=values)
    return job


def _part_of_prefill(traffic: Traffic) -> Array:
    """Return the share of kernel time that computes prompts, per tick and GPU."""
    t = traffic.ticks
    cost = np.array([r.model.prefill_s for r in t.run.cluster.replicas])
    base = t.per_replica(t.run.steps[:, k.T_BASE])
    return np.asarray(t.to_gpus(np.clip(t.prefill_tokens * cost / np.maximum(base, 1e-9), 0, 1)))


def _work_share(traffic: Traffic) -> Array:
    """Return a GPU's sequences over the mean of its replica's GPUs: 1 where all work alike."""
    t = traffic.ticks
    mean = np.zeros_like(t.sequences)
    for r in t.run.cluster.replicas:
        own = t.run.cluster.gpus_of(r.index)
        mean[:, own] = t.sequences[:, own].mean(axis=1, keepdims=True)
    return np.where(mean > 0, np.clip(t.sequences / np.maximum(mean, 1e-9), 0, 2), 1.0)


def _slow(ticks: Array, over: int) -> Array:
    """Return an exponential mean over about so many ticks: heat follows power slowly."""
    out = np.empty_like(ticks)
    now = ticks[: max(1, over)].mean(axis=0)
    for i, row in enumerate(ticks):
        now = now + (row - now) / over
        out[i] = now
    return out


def nodes(traffic: Traffic, rng: np.random.Generator) -> Job:
    """Return the job that scrapes node exporters of the serving hosts."""
    t, cluster = traffic.ticks, traffic.ticks.run.cluster
    job = Job("node_exporter", list(cluster.addresses), list(cluster.addresses), t.run.duration_s, rng)
    cores = load()["host"]["cores"]
    busy = t.knob("cpu_busy_ratio")

    def per_host(gpus: Array) -> Array:
        out: Array = gpus.reshape(t.count, cluster.hosts, GPUS).sum(axis=2)
        return out

    ranks = per_host(np.minimum(t.to_gpus(t.length_s) / TICK_S, 1) + t.knob("rank_cpu_ratio"))  # a rank polls
    arrivals = t.binned(t.run.demand.at_s, _host_of(traffic), cluster.hosts, t.run.counts[:, 0] * 2e-6 + 4e-4)
    front = arrivals / TICK_S * t.knob("frontend_ratio")
    registering = (t.to_gpus(t.knob("kv_delay_s"))[:, ::GPUS] > 0) * 1.5
    late = per_host((t.knob("rank_delay_s") > 0) * (t.knob("rank_cpu_ratio") < 0) * 1.0)
    used = busy * cores + np.clip(ranks, 0, None) + np.minimum(front, 4) + registering + 1.5
    own = rng.gamma(4, 0.25, used.shape)
    user = np.minimum(used + own, cores)
    starved = np.clip(busy - 0.75, 0, 1) * 4 + late + (front > 0.9) * np.minimum(front, 3) * 0.3
    starved += _stopped(traffic)
    job.counter("host.cpu_s", user * TICK_S, start=1e8, whole=False, labels={"mode": "user"})
    job.counter(
        "host.cpu_s", np.maximum(cores - user, 0) * TICK_S, start=1e9, whole=False, labels={"mode": "idle"}
    )
    job.gauge("host.tasks_running", 1 + user + starved * 6, 0.1, 1.0)
    job.gauge("host.load1", _slow(user + starved * 6, int(60 / TICK_S)), 0.0, 0.01)
    job.counter(
        "host.pressure_cpu_waiting_s", (np.minimum(starved, 1) * 0.8 + 0.004) * TICK_S, start=1e4, whole=False
    )
    segments = traffic.front_tx / SEGMENT_BYTES + 4
    tokens = traffic.front_answers / 230
    lost = rng.poisson(tokens * t.knob("egress_loss_ratio") + segments * 1e-6)
    job.counter("host.tcp_sent", segments + tokens, start=1e10)
    job.counter("host.tcp_retransmitted", lost.astype(float), start=1e5)
    free = 1.6e12 - 4e10 * t.knob("pageable")
    job.gauge("host.memory_available_bytes", free, 0.002)
    job.gauge("host.clock_offset_s", rng.normal(0, 2e-6, busy.shape))
    return job


def ports(traffic: Traffic, rng: np.random.Generator) -> Job:
    """Return what node_exporter says of the front-end ports: rows of the counters table."""
    t, cluster = traffic.ticks, traffic.ticks.run.cluster
    job = Job("node_exporter", [cluster.front_port(h) for h in range(cluster.hosts)], list(cluster.addresses),
              t.run.duration_s, rng)  # fmt: skip
    job.counter("eth.rx_bytes", traffic.front_rx, start=1e13)
    job.counter("eth.tx_bytes", traffic.front_tx, start=1e13)
    drops = rng.poisson(traffic.front_rx / SEGMENT_BYTES * t.knob("ingress_loss_ratio")).astype(float)
    job.counter("eth.rx_dropped", drops, start=50)
    job.counter("eth.tx_dropped", (t.knob("front_load_ratio") > 0.95) * 20.0, start=50)
    return job


def _host_of(traffic: Traffic) -> Array:
    run = traffic.ticks.run
    return np.array([r.hosts[0] for r in run.cluster.replicas])[np.maximum(run.replica, 0)]


def _stopped(traffic: Traffic) -> Array:
    """Return the share of each tick in which all processes of a host wait for a processor."""
    t, cluster = traffic.ticks, traffic.ticks.run.cluster
    out = np.zeros((t.count, cluster.hosts))
    for gpu, start, end in t.run.pauses:
        if t.knob("host_pause_s")[min(int(start / TICK_S), t.count - 1), gpu // GPUS] > 0:
            part = np.diff(np.clip(t.edges_s, start, end)) / TICK_S
            out[:, gpu // GPUS] += part / GPUS
    return out
