"""Engines and the gateway, as Prometheus scrapes them."""

from __future__ import annotations

import numpy as np

from skewscope.core.tables import Array
from skewscope.lab.sim.compiled import kernel as k
from skewscope.lab.sim.ticks import Ticks
from skewscope.lab.sim.vantage.job import Job

TTFT = (
    0.001,
    0.005,
    0.01,
    0.02,
    0.04,
    0.06,
    0.08,
    0.1,
    0.25,
    0.5,
    0.75,
    1.0,
    2.5,
    5.0,
    7.5,
    10.0,
    20.0,
    40.0,
    80.0,
)
ITL = (
    0.01,
    0.025,
    0.05,
    0.075,
    0.1,
    0.15,
    0.2,
    0.3,
    0.4,
    0.5,
    0.75,
    1.0,
    2.5,
    5.0,
    7.5,
    10.0,
    20.0,
    40.0,
    80.0,
)
WHOLE = (
    0.3,
    0.5,
    0.8,
    1.0,
    1.5,
    2.0,
    2.5,
    5.0,
    10.0,
    15.0,
    20.0,
    30.0,
    40.0,
    50.0,
    60.0,
    120.0,
    240.0,
    480.0,
)
SIZES = (1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0)
XFER = (0.001, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 5.0)
BYTES = tuple(2.0**n for n in range(11, 36, 2))
DESCRIPTORS = (10.0, 20.0, 30.0, 50.0, 75.0, 100.0, 200.0, 400.0, 1e3, 2e3, 4e3, 1e4, 2e4, 5e4)
"""Bounds of vLLM's buckets (0.33)."""


def engines(t: Ticks, name: str, rng: np.random.Generator) -> Job | None:
    """Return the job that scrapes the engines of one product, None where there is none."""
    run, cluster = t.run, t.run.cluster
    mine = [r.index for r in cluster.replicas if r.engine == name and r.role != "training"]
    if not mine:
        return None
    places = [cluster.endpoint(r) for r in mine]
    job = Job(name, places, places, run.duration_s, rng)
    running = t.last_of(k.T_RUNNING)[:, mine]
    used = t.last_of(k.T_USED)[:, mine]
    blocks = np.array([cluster.replicas[r].kv_blocks for r in mine]) * t.knob("kv_blocks_ratio")[:, mine]
    live = 1 - t.knob("zeroed")[:, mine]
    job.gauge("engine.requests_running", running * live)
    job.gauge("engine.requests_waiting", _waiting(t, mine) * live)
    job.gauge("engine.kv_usage_ratio", np.clip(used / blocks, 0, 1) * live, digits=1e-4)
    begun = _restarts(t, mine)
    job.counter("engine.prompt_tokens", t.prefill_tokens[:, mine] * live, start=1e9, reset_s=begun)
    job.counter("engine.generation_tokens", t.decode_tokens[:, mine] * live, start=1e8, reset_s=begun)
    _latencies(t, job, mine)
    if name == "vllm":
        _vllm(t, job, mine, begun)
    else:
        _sglang(t, job, mine)
    held = np.take_along_axis(t.knob("frozen")[:, mine], _at(job, t), axis=0) > 0
    if held.any():
        job.hold(held)
    gone = np.take_along_axis(t.knob("restarting")[:, mine], _at(job, t), axis=0) > 0
    job.kept &= ~gone
    return job


def _at(job: Job, t: Ticks) -> Array:
    return np.clip((job.times_s / 0.1).astype(np.int64), 0, t.count - 1)


def _restarts(t: Ticks, mine: list[int]) -> Array:
    """Return when each engine began anew, NaN where it did not."""
    away = t.knob("restarting")[:, mine] > 0
    ended = np.diff(away.astype(int), axis=0) < 0
    return np.where(ended.any(axis=0), t.mid_s[np.argmax(ended, axis=0)], np.nan)


def _waiting(t: Ticks, mine: list[int]) -> Array:
    """Return waiting requests, also while no step ends: what came in since counts."""
    run, count = t.run, len(t.run.cluster.replicas)
    known = (run.replica >= 0) & (run.times[:, k.Q_READY] > 0)
    came = t.binned(run.times[known, k.Q_READY], run.replica[known], count)
    begun = run.times[:, k.Q_ADMITTED] > 0
    went = t.binned(run.times[begun, k.Q_ADMITTED], run.replica[begun], count)
    lost = known & ~begun & ~np.isnan(run.failed_s)
    went += t.binned(run.failed_s[lost], run.replica[lost], count)
    out: Array = np.cumsum(came - went, axis=0)[:, mine].clip(0)
    return out


def _owner(t: Ticks, mine: list[int]) -> Array:
    """Return each request's place among the engines of the job, -1 where it is with another product."""
    place = np.full(len(t.run.cluster.replicas) + 1, -1)
    place[mine] = np.arange(len(mine))
    return place[t.run.replica]


def _latencies(t: Ticks, job: Job, mine: list[int]) -> None:
    """Add the histograms that every engine has; the engine's clock starts when the request has come in."""
    run, owner = t.run, _owner(t, mine)
    tokens = t.tokens
    first = tokens.number == 0
    q = tokens.request[first]
    here = owner[q] >= 0
    came = run.demand.at_s[q] + 0.0005
    job.histogram(
        "engine.ttft_s", tokens.made_s[first][here], owner[q][here], (tokens.made_s[first] - came)[here], TTFT
    )
    gaps = np.diff(tokens.made_s, prepend=0.0)
    inside = ~first & (owner[tokens.request] >= 0)
    job.histogram(
        "engine.itl_s", tokens.made_s[inside], owner[tokens.request[inside]], np.maximum(gaps[inside], 0), ITL
    )
    done = (run.times[:, k.Q_END] > 0) & (owner >= 0)
    ends = run.times[done, k.Q_END]
    job.histogram("engine.e2e_s", ends, owner[done], ends - run.demand.at_s[done], WHOLE)
    begun = (run.times[:, k.Q_ADMITTED] > 0) & (owner >= 0)
    at = run.times[begun, k.Q_ADMITTED]
    job.histogram("engine.queue_s", at, owner[begun], np.maximum(at - run.times[begun, k.Q_READY], 0), WHOLE)


def _vllm(t: Ticks, job: Job, mine: list[int], begun: Array) -> None:
    run, owner, size = t.run, _owner(t, mine), len(mine)
    thrown = run.log[run.log[:, 2] == k.LOG_PREEMPTED]
    place = owner[thrown[:, 1].astype(np.int64)]
    job.counter(
        "engine.preemptions", t.binned(thrown[:, 0], np.maximum(place, 0), size), start=30, reset_s=begun
    )
    done = (run.times[:, k.Q_END] > 0) & (owner >= 0)
    left = ~np.isnan(run.left_s) & (run.counts[:, k.N_DONE] <= -run.left_s)
    for reason, chosen in (("stop", done & ~left), ("abort", done & left)):
        counts = t.binned(run.times[chosen, k.Q_END], owner[chosen], size)
        job.counter(
            "engine.requests_finished", counts, start=1e5, labels={"finished_reason": reason}, reset_s=begun
        )
    admitted = (run.times[:, k.Q_ADMITTED] > 0) & (owner >= 0)
    at, who = run.times[admitted, k.Q_ADMITTED], owner[admitted]
    job.counter(
        "engine.prefix_cache_queries", t.binned(at, who, size, run.counts[admitted, k.N_PROMPT]), start=1e8
    )
    hits = np.maximum(t.run.cached[admitted], 0)
    job.counter("engine.prefix_cache_hits", t.binned(at, who, size, hits), start=3e7)
    chosen = np.isin(run.steps[:, k.T_REPLICA], mine)
    rows = run.steps[chosen]
    place_of = np.zeros(len(run.cluster.replicas), np.int64)
    place_of[mine] = np.arange(size)
    job.histogram("engine.iteration_tokens", rows[:, k.T_END], place_of[rows[:, k.T_REPLICA].astype(int)],
                  rows[:, k.T_PREFILL] + rows[:, k.T_BATCH], SIZES)  # fmt: skip
    if run.transfers:
        _transfers(t, job, place_of)


def _transfers(t: Ticks, job: Job, place_of: Array) -> None:
    """Add NIXL's histograms at the engine that receives the cache."""
    good = [x for x in t.run.transfers if not x.failed]
    at = np.array([x.end_s for x in good])
    who = place_of[[x.target for x in good]] if good else np.zeros(0, np.int64)
    took = np.array([x.end_s - x.start_s for x in good])
    job.histogram("engine.kv_transfer_s", at, who, took, XFER)
    pieces = np.array([float(x.pieces) for x in good])
    job.histogram("engine.kv_transfer_post_s", at, who, pieces * 3e-6 + 2e-4, XFER)
    job.histogram("engine.kv_transfer_bytes", at, who, np.array([x.nbytes for x in good]), BYTES)
    job.histogram("engine.kv_transfer_descriptors", at, who, pieces, DESCRIPTORS)
    bad = [x for x in t.run.transfers if x.failed]
    counts = t.binned(np.array([x.end_s for x in bad]), place_of[[x.target for x in bad]] if bad else
                      np.zeros(0, np.int64), len(job.entities))  # fmt: skip
    job.counter("engine.kv_transfers_failed", counts, start=2)


def _sglang(t: Ticks, job: Job, mine: list[int]) -> None:
    balance, spread = np.ones((t.count, len(mine))), np.ones((t.count, len(mine)))
    for place, r in enumerate(mine):
        own = t.run.cluster.gpus_of(r)
        loads = t.knob("expert_load_ratio")[:, own]
        balance[:, place] = loads.mean(axis=1) / loads.max(axis=1)
        work = t.sequences[:, own]
        mean = work.mean(axis=1)
        spread[:, place] = np.where(mean > 0, work.max(axis=1) / np.maximum(mean, 1e-9), 1.0)
    job.gauge("engine.dp_token_imbalance_ratio", spread, 0.01)
    job.gauge("engine.expert_balance_ratio", balance * 0.93, 0.01)


def gateway(t: Ticks, rng: np.random.Generator) -> Job:
    """Return the job that scrapes the gateway; its times end when a token leaves for the client."""
    run, tokens = t.run, t.tokens
    place = f"{run.cluster.gateway}:8080"
    job = Job("dynamo", [place], [place], run.duration_s, rng)
    zero = np.zeros(len(run), np.int64)
    job.counter("gateway.requests", t.binned(run.demand.at_s, zero, 1), start=1e6)
    first = tokens.number == 0
    last = np.append(first[1:], True) if len(first) else first
    closed = last & (run.times[tokens.request, k.Q_END] > 0)
    ends, who = tokens.sent_s[closed], tokens.request[closed]
    job.counter("gateway.requests_finished", t.binned(ends, zero[who], 1), start=1e6)
    came, went = t.binned(run.demand.at_s, zero, 1), t.binned(ends, zero[who], 1)
    job.gauge("gateway.requests_running", np.cumsum(came - went, axis=0).clip(0))
    left = run.hung_up_s(tokens.request, tokens.number, tokens.sent_s)
    job.counter("gateway.disconnected_clients", t.binned(left, np.zeros(len(left), np.int64), 1), start=100)
    q = tokens.request[first]
    none = np.zeros(len(q), np.int64)
    job.histogram(
        "gateway.ttft_s", tokens.sent_s[first], none, tokens.sent_s[first] - run.demand.at_s[q], TTFT
    )
    gaps = np.maximum(np.diff(tokens.sent_s, prepend=0.0), 0)[~first]
    job.histogram("gateway.itl_s", tokens.sent_s[~first], np.zeros(len(gaps), np.int64), gaps, ITL)
    job.histogram("gateway.e2e_s", ends, np.zeros(len(ends), np.int64), ends - run.demand.at_s[who], WHOLE)
    return job
