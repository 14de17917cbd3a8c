"""Training as a second workload: iterations of pipelines that meet in an all-reduce of gradients.

An iteration of a job lasts as long as its slowest pipeline, and that as long as its slowest stage lets it:
(microbatches + stages - 1) times the stage's microbatch (GPipe's bubble), then the gradients. Rows have the
form of a serving run: a step is an iteration, its prefill tokens are the tokens trained on.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.tables import Array
from skewscope.lab.sim.cluster import GPUS, Cluster, Replica
from skewscope.lab.sim.compiled import kernel as k
from skewscope.lab.sim.events import Streams
from skewscope.lab.sim.knobs import Settings
from skewscope.lab.sim.params import load
from skewscope.lab.sim.rates import network_of, rank_settings
from skewscope.lab.sim.workload import Demand
from skewscope.lab.sim.world import Change, Run

MFU = 0.4
"""Share of peak that training reaches (Llama 3: 38 to 43 %)."""
FLOPS_PER_PARAMETER_TOKEN = 6.0
GRADIENT_BYTES = 2.0
OVERLAP = 0.7
"""Share of the gradients' transfer that hides behind the backward pass (ours)."""


def parallel(r: Replica) -> int:
    """Return the number of pipelines of a job."""
    return len(r.hosts) // r.stages


def shard_bytes(r: Replica) -> float:
    """Return the bytes of gradients that one GPU holds."""
    return r.model.weights_bytes / 2 * GRADIENT_BYTES / r.stages / GPUS


def microbatch_s(r: Replica, tokens: int, tflops: float) -> float:
    """Return the s that one stage computes for one microbatch, forward and backward."""
    work = FLOPS_PER_PARAMETER_TOKEN * r.model.weights_bytes / 2 * tokens
    return work / (r.stages * GPUS * tflops * 1e12 * MFU)


def run(cluster: Cluster, changes: list[Change], duration_s: float, seed: int) -> Run:
    """Run all training jobs of a cluster, iteration by iteration."""
    streams, settings = Streams.of(seed), Settings(cluster)
    pending = sorted(changes, key=lambda c: c.at_s)
    jobs = [r for r in cluster.replicas if r.role == "training"]
    ranks = max(r.ranks for r in jobs)
    now = dict.fromkeys((r.index for r in jobs), 0.0)
    steps: list[Array] = []
    own: list[Array] = []
    pauses: list[tuple[int, float, float]] = []
    while min(now.values()) < duration_s:
        r = min(jobs, key=lambda job: now[job.index])
        start = now[r.index]
        while pending and pending[0].at_s <= start:
            change = pending.pop(0)
            settings.set(change.at_s, change.knob, list(change.places), change.value)
        row, times = _iteration(cluster, settings, r, start, streams, ranks, pauses)
        now[r.index] = float(row[k.T_END])
        steps.append(row)
        own.append(times)
    for change in pending:
        settings.set(change.at_s, change.knob, list(change.places), change.value)
    none = Demand(*(np.zeros(0, np.int64) for _ in range(5)))
    empty = np.zeros(0)
    return Run(
        cluster, settings, none, duration_s, streams, np.stack(steps), np.stack(own).astype(np.float32),
        np.zeros((len(steps), ranks), np.float32), np.zeros((0, 3)), np.zeros((0, 4)),
        np.zeros((0, 8), np.int64), np.zeros(0, np.int64), empty, np.zeros(0, np.int64), empty,
        np.zeros(0, np.int64), [], pauses,
    )  # fmt: skip


def _iteration(
    cluster: Cluster, settings: Settings, r: Replica, start: float, streams: Streams, ranks: int,
    pauses: list[tuple[int, float, float]],
) -> tuple[Array, Array]:  # fmt: skip
    """Return the row of one iteration and each rank's own time in it."""
    said, params = cluster.training, load()
    count, tokens = int(said.get("microbatches", 8)), int(said.get("tokens", 2048))
    base = microbatch_s(r, tokens, params["gpu"]["tflops"])
    set_of = rank_settings(cluster, settings, ranks)[:, r.index, : r.ranks]
    gpus = np.array(cluster.gpus_of(r.index))
    noise = np.exp(streams.noise.normal(0.0, params["noise"]["rank_ratio"], r.ranks))
    lengths = settings.now["train_bytes_ratio"][gpus]
    each = base * set_of[k.R_SLOW] * set_of[k.R_PREFILL] * noise * lengths + set_of[k.R_DELAY]
    late = streams.noise.random(r.ranks) < 1 / GPUS
    each = each * (1 + set_of[k.R_LATE] * late * streams.noise.random(r.ranks))
    stopped = _stops(settings, gpus, start, count * base, streams, pauses)
    # Pipelines in order of hosts: stage s of pipeline d is on host d * stages + s.
    stage = each.reshape(parallel(r), r.stages, GPUS).max(axis=2)
    held = stopped.reshape(parallel(r), -1).max(axis=1)
    pipelines = (count + r.stages - 1) * stage.max(axis=1) + held
    mult, add = network_of(cluster, settings, r)
    gradients = shard_bytes(r) * 2 * (1 - 1 / max(parallel(r), 1)) / (params["network"]["nic_bps"] / 8)
    net = gradients * (mult - OVERLAP) + add
    row = np.zeros(k.STEP_COLUMNS)
    row[k.T_START], row[k.T_END], row[k.T_REPLICA] = start, start + pipelines.max() + net, r.index
    row[k.T_PREFILL] = count * tokens * parallel(r)
    row[k.T_NET], row[k.T_BASE] = net, count * base
    times = np.zeros(ranks)
    times[: r.ranks] = count * each + stopped
    return row, times


def _stops(
    settings: Settings, gpus: Array, start: float, length_s: float, streams: Streams,
    pauses: list[tuple[int, float, float]],
) -> Array:  # fmt: skip
    """Return the s for which each rank's process stood still in an iteration."""
    now = settings.now
    out = np.zeros(len(gpus))
    for knob, places in (("rank_pause", gpus), ("host_pause", gpus // GPUS)):
        pause = now[f"{knob}_s"][places]
        for n in np.flatnonzero(pause > 0):
            period = float(now[f"{knob}_period_s"][places[n]])
            chance = min(length_s / period, 1.0)
            if streams.noise.random() < chance or period < length_s:
                out[n] += float(pause[n]) * max(1.0, length_s / period)
                pauses.append((int(gpus[n]), start, start + float(out[n])))
    return out
