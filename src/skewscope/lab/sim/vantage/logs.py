"""Logs: requests at gateway and engines, kernel messages, probes, heartbeats, flow records."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from skewscope.core.directory import Directory
from skewscope.core.schemas import EVENTS, FLOW_RECORDS, REQUESTS
from skewscope.core.tables import Array, Table
from skewscope.lab.sim.cluster import GPUS
from skewscope.lab.sim.compiled import kernel as k
from skewscope.lab.sim.ticks import TICK_S, Ticks
from skewscope.lab.sim.vantage.hardware import pci
from skewscope.lab.sim.vantage.traffic import Traffic

REGISTRY = "10.255.0.10"
STRANGER = "203.0.113.77"
FLOW_S = 5.0
"""Active time-out of the flow exporter."""
SAMPLING = 1000
PROBE_S, BEAT_S = 1.0, 1.0


def requests(t: Ticks, directory: Directory, start_ns: int) -> Table:
    """Return the access log of the gateway: a row when a request ends or its client goes away."""
    run, tokens = t.run, t.tokens
    first, last = tokens.first, tokens.last
    q = tokens.request[first]
    failed = ~np.isnan(run.failed_s[q])
    ended = ((run.times[q, k.Q_END] > 0) | failed) & (tokens.sent_s[last] < run.duration_s)
    first, last, q = first[ended], last[ended], q[ended]
    gone = ~np.isnan(run.left_s[q])
    cut = first + np.where(
        gone, np.minimum(-np.nan_to_num(run.left_s[q]), last - first + 1) - 1, last - first
    )
    cut = cut.astype(np.int64)
    end = tokens.sent_s[cut]
    order = np.argsort(end, kind="stable")
    first, cut, q, gone, end = first[order], cut[order], q[order], gone[order], end[order]
    entity = directory.entities.id(run.cluster.gateway)
    peers = np.array([directory.entities.id(run.cluster.endpoint(r.index)) for r in run.cluster.replicas])
    directory.sources.append(f"access log of {run.cluster.gateway}")
    clients = run.cluster.clients
    keys = [directory.texts.id(f"{clients[run.demand.client[n] % len(clients)]}/{n}") for n in q]
    queued = run.times[q, k.Q_ADMITTED] - run.times[q, k.Q_READY]
    return Table(
        REQUESTS,
        {
            "ts_ns": _ns(run.demand.at_s[q], start_ns),
            "source": np.full(len(q), len(directory.sources) - 1),
            "line": np.arange(1, len(q) + 1),
            "entity": np.full(len(q), entity),
            "end_ns": _ns(end, start_ns),
            "first_ns": _ns(tokens.sent_s[first], start_ns),
            "queued_s": np.where(queued >= 0, queued, np.nan),
            "prompt_tokens": run.counts[q, k.N_PROMPT],
            "output_tokens": cut - first + 1,
            "cached_tokens": run.cached[q],
            "status": np.where(np.isnan(run.failed_s[q]), np.where(gone, -2, 200), -1),
            "key": np.array(keys, np.uint32),
            "peer": peers[run.replica[q]],
        },
    )


class _Rows:
    """Events while they are gathered."""

    def __init__(self, directory: Directory) -> None:
        self._directory = directory
        self._rows: list[tuple[float, str, str, int, str, dict[str, Any]]] = []

    def add(self, at_s: float, entity: str, kind: str, code: int = 0, peer: str = "", **fields: Any) -> None:
        self._rows.append((at_s, entity, kind, code, peer, fields))

    def table(self, start_ns: int) -> Table:
        rows = sorted(self._rows, key=lambda r: r[0])
        d = self._directory
        d.sources.append("kernel messages, probes and heartbeats")
        return Table(
            EVENTS,
            {
                "ts_ns": _ns(np.array([r[0] for r in rows]), start_ns),
                "source": np.full(len(rows), len(d.sources) - 1),
                "line": np.arange(1, len(rows) + 1),
                "entity": np.array([d.entities.id(r[1]) for r in rows], np.uint32),
                "kind": np.array([d.names.id(r[2]) for r in rows], np.uint32),
                "code": np.array([r[3] for r in rows], np.int64),
                "peer": np.array([d.entities.id(r[4]) for r in rows], np.uint32),
                "fields": np.array([d.texts.id(json.dumps(r[5])) if r[5] else 0 for r in rows], np.uint32),
            },
        )


def events(t: Ticks, directory: Directory, start_ns: int, rng: np.random.Generator) -> Table:
    """Return kernel messages, health probes (each second) and heartbeats of the hosts (each second)."""
    rows = _Rows(directory)
    run, cluster = t.run, t.run.cluster
    for g in range(cluster.hosts * GPUS):
        rows.add(0.0, cluster.gpu(g), "gpu.identity", g % GPUS, pci(cluster, g))
    _kernel_messages(t, rows)
    _probes(t, rows, rng)
    late = t.knob("heartbeat_late_s")
    for h, address in enumerate(cluster.addresses):
        phase = rng.random() * BEAT_S
        for n in range(int(run.duration_s / BEAT_S)):
            at = phase + n * BEAT_S
            tick = min(int(at / TICK_S), t.count - 1)
            at += 0.002 * rng.random() + float(late[tick, h]) * rng.random()
            if at < run.duration_s:
                rows.add(at, address, "node.heartbeat")
    return rows.table(start_ns)


def _kernel_messages(t: Ticks, rows: _Rows) -> None:
    cluster = t.run.cluster
    every = int(10 / TICK_S)
    xid = t.knob("gpu_xid")
    for g in map(int, np.flatnonzero(xid.any(axis=0))):
        begun = int(np.argmax(xid[:, g] > 0))
        for tick in range(begun, t.count, every):
            if xid[tick, g] > 0:
                rows.add(tick * TICK_S, cluster.gpu(g), "gpu.xid", int(xid[tick, g]), pci(cluster, g))
    down = np.diff(t.knob("nic_down"), axis=0, prepend=0.0)
    for tick, g in np.argwhere(down).tolist():
        device = f"{cluster.addresses[g // GPUS]}/rdma{g % GPUS}"
        if down[tick, g] > 0:
            rows.add(tick * TICK_S, device, "link.down")
        else:
            rows.add(tick * TICK_S, device, "link.up", 400_000)
    aer = t.knob("pcie_aer_per_s")
    for g in map(int, np.flatnonzero((aer > 0).any(axis=0))):
        for tick in range(int(np.argmax(aer[:, g] > 0)), t.count, 20):
            if aer[tick, g] > 0:
                rows.add(tick * TICK_S, pci(cluster, g), "pcie.aer", 0, pci(cluster, g))
    weak = t.knob("pageable")
    for h in map(int, np.flatnonzero((weak > 0).any(axis=0))):
        rows.add(int(np.argmax(weak[:, h] > 0)) * TICK_S, cluster.addresses[h], "peermem.error", 0)
    away = np.diff(t.knob("restarting") + t.knob("cold"), axis=0, prepend=0.0)
    for tick, r in np.argwhere(away).tolist():
        kind = "engine.stopped" if away[tick, r] > 0 else "engine.started"
        rows.add(tick * TICK_S, cluster.endpoint(r), kind)
    for at_s, r in t.run.announced:
        rows.add(at_s, cluster.endpoint(r), "deploy.announced")


def _probes(t: Ticks, rows: _Rows, rng: np.random.Generator) -> None:
    """Health probes: a connection and an answer of the API server, which says little of the engine."""
    cluster = t.run.cluster
    down = (t.knob("restarting") + t.knob("cold")) > 0
    fails, passes = t.knob("probe_fails") > 0, t.knob("probe_passes") > 0
    stopped = t.knob("stopped_until_s") > t.mid_s[:, None]
    for gpu, start, end in t.run.pauses:
        if end - start > 8:  # a rank that stands still stops its engine
            stopped[int(start / TICK_S) : int(end / TICK_S), cluster.replica_of(gpu // GPUS)] = True
    flaky = t.knob("probe_flaky_share")
    since = np.zeros(down.shape)
    for i in range(1, t.count):
        since[i] = np.where(stopped[i], since[i - 1] + TICK_S, 0)
    for r in (r.index for r in cluster.replicas if r.role != "training"):
        phase = rng.random() * PROBE_S
        for n in range(int(t.run.duration_s / PROBE_S)):
            at = phase + n * PROBE_S
            tick = min(int(at / TICK_S), t.count - 1)
            # An engine that stands still fails its probes after a while, unless they ask the server only.
            bad = down[tick, r] or fails[tick, r] or (since[tick, r] > 8 and not passes[tick, r])
            bad = bad or rng.random() < flaky[tick, r]
            rows.add(at, cluster.endpoint(r), "probe.failed" if bad else "probe.passed", 503 if bad else 200)


def flow_records(traffic: Traffic, directory: Directory, addresses: dict[str, int], start_ns: int,
                 rng: np.random.Generator) -> Table:  # fmt: skip
    """Return what a sampling exporter at the front-end switch says of each pair of addresses."""
    t, cluster = traffic.ticks, traffic.ticks.run.cluster
    rows: list[tuple[float, float, str, str, float]] = []
    width = int(FLOW_S / TICK_S)
    gateway = cluster.gateway
    new = t.knob("front_upload_new") > 0
    bulk = traffic._rate("front_load_ratio")
    fetch = traffic._rate("front_fetch_ratio")
    for begin in range(0, t.count, width):
        span = slice(begin, min(begin + width, t.count))
        times = begin * TICK_S, min(begin + width, t.count) * TICK_S
        for h, address in enumerate(cluster.addresses):
            parts = (
                (gateway, address, (traffic.front_rx - fetch - traffic.front_kv_rx)[span, h].sum()),
                (address, gateway, traffic.front_answers[span, h].sum()),
                (REGISTRY, address, fetch[span, h].sum()),
                (address, STRANGER if new[span, h].any() else REGISTRY, bulk[span, h].sum()),
            )
            rows += [(*times, a, b, float(n)) for a, b, n in parts if n > 0]
    for x in t.run.transfers:
        if x.tcp:
            a, b = (cluster.addresses[cluster.replicas[r].hosts[0]] for r in (x.source, x.target))
            rows.append((x.start_s, min(x.end_s, t.run.duration_s), a, b, x.nbytes))
    rows.sort(key=lambda r: r[1])
    sampled = rng.poisson(np.array([r[4] for r in rows]) / 1400 / SAMPLING) * float(SAMPLING)
    kept = sampled > 0
    ids = np.array([[addresses[r[2]], addresses[r[3]]] for r in rows], np.uint32).reshape(-1, 2)
    switch = directory.entities.id("front-switch")
    directory.sources.append("IPFIX of front-switch")
    return Table(
        FLOW_RECORDS,
        {
            "ts_ns": _ns(np.array([r[0] for r in rows]), start_ns)[kept],
            "source": np.full(int(kept.sum()), len(directory.sources) - 1),
            "line": np.arange(1, int(kept.sum()) + 1),
            "entity": np.full(int(kept.sum()), switch),
            "end_ns": _ns(np.array([r[1] for r in rows]), start_ns)[kept],
            "src": ids[kept, 0],
            "dst": ids[kept, 1],
            "proto": np.full(int(kept.sum()), 6),
            "packets": sampled[kept],
            "nbytes": sampled[kept] * 1400,
            "sampling": np.full(int(kept.sum()), SAMPLING),
        },
    )


def _ns(at_s: Array, start_ns: int) -> Array:
    return start_ns + np.round(np.asarray(at_s, float) * 1e9).astype(np.int64)
