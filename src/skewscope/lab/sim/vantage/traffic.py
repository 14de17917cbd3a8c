"""Bytes per tick that a run moves over RDMA ports, NVLink, PCIe and front-end ports."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skewscope.core.tables import Array
from skewscope.lab.sim.cluster import GPUS
from skewscope.lab.sim.params import load
from skewscope.lab.sim.rates import STEP_PCIE_BYTES
from skewscope.lab.sim.ticks import TICK_S, Ticks

CHUNK_BYTES = 230
"""One streamed event on the wire with its headers (docs/testbed.md)."""
SEGMENT_BYTES = 1448
TOP_K = 8


@dataclass
class Traffic:
    """Amounts per tick: shape (ticks, GPUs) for RDMA ports, NVLink and slots, (ticks, hosts) in front."""

    ticks: Ticks

    def __post_init__(self) -> None:
        run = self.ticks.run
        self._cluster = run.cluster
        self._shape = (self.ticks.count, run.cluster.hosts * GPUS)
        self.rdma_tx, self.rdma_rx = np.zeros(self._shape), np.zeros(self._shape)
        self.writes_rx = np.zeros(self._shape)
        self.nvlink = np.zeros(self._shape)
        self._collectives()
        self._caches()

    def _collectives(self) -> None:
        """Add what the steps of each replica move."""
        t = self.ticks
        tokens = t.prefill_tokens + t.decode_tokens
        for r in self._cluster.replicas:
            gpus = self._cluster.gpus_of(r.index)
            rest = gpus[GPUS:]
            n, m = tokens[:, r.index], r.model
            if not r.data_parallel:
                inside = n * m.hidden * 2 * (2 * m.layers + 1) * 2 * 7 / 8 / r.stages
                self.nvlink[:, gpus] += inside[:, None]
            if r.experts:
                crossing = n * m.hidden * 2 * m.layers * 2 * TOP_K / 2 / len(gpus)
                load_of = t.knob("expert_load_ratio")[:, gpus]
                self.rdma_tx[:, gpus] += crossing[:, None]
                self.rdma_rx[:, gpus] += crossing[:, None] * load_of
                self.writes_rx[:, gpus] += t.steps[:, [r.index]] * 2 * m.layers
            elif r.stages > 1:
                per_port = n * m.hidden * 2 * 2 / GPUS
                for host in range(len(r.hosts) - 1):
                    if (host + 1) % r.stages == 0:  # the last stage of a pipeline sends nothing on
                        continue
                    a, b = (gpus[n * GPUS : (n + 1) * GPUS] for n in (host, host + 1))
                    self.rdma_tx[:, a] += per_port[:, None]
                    self.rdma_rx[:, b] += per_port[:, None]
                    self.writes_rx[:, b] += t.steps[:, [r.index]] * 2
                if r.role == "training":
                    copies = len(r.hosts) // r.stages
                    gradients = r.model.weights_bytes / r.stages / GPUS * 2 * (1 - 1 / copies)
                    for part in (self.rdma_tx, self.rdma_rx):
                        part[:, gpus] += t.steps[:, [r.index]] * gradients
            elif rest:
                # A hierarchical ring: each of the 8 rails carries its eighth out and in once per collective.
                per_port = n * m.hidden * 2 * (2 * m.layers + 1) * 2 / GPUS * (1 - 1 / len(r.hosts))
                for part in (self.rdma_tx, self.rdma_rx):
                    part[:, gpus] += per_port[:, None]
                self.writes_rx[:, gpus] += t.steps[:, [r.index]] * (2 * m.layers + 1)

    def _caches(self) -> None:
        """Add the transfers of caches, over the eight ports of both hosts or in front over TCP."""
        self.front_kv_tx, self.front_kv_rx = self._zeros_front(), self._zeros_front()
        edges = self.ticks.edges_s
        for transfer in self.ticks.run.transfers:
            a = self._cluster.replicas[transfer.source].hosts[0]
            b = self._cluster.replicas[transfer.target].hosts[0]
            done = 0.02 if transfer.failed else 1.0
            low = max(0, int(transfer.start_s / TICK_S))
            high = min(self.ticks.count, int(transfer.end_s / TICK_S) + 1)
            if low >= high:
                continue
            part = np.diff(np.clip(edges[low : high + 1], transfer.start_s, transfer.end_s))
            part /= max(transfer.end_s - transfer.start_s, 1e-9)
            if transfer.tcp:
                self.front_kv_tx[low:high, a] += part * transfer.nbytes
                self.front_kv_rx[low:high, b] += part * transfer.nbytes
                continue
            share = (part * transfer.nbytes * done / GPUS)[:, None]
            self.rdma_tx[low:high, a * GPUS : (a + 1) * GPUS] += share
            self.rdma_rx[low:high, b * GPUS : (b + 1) * GPUS] += share
            self.writes_rx[low:high, b * GPUS : (b + 1) * GPUS] += part[:, None] * transfer.pieces / GPUS

    def _zeros_front(self) -> Array:
        return np.zeros((self.ticks.count, self._cluster.hosts))

    @cached_property
    def rdma_others_tx(self) -> Array:
        """Bytes of others out of each RDMA port, as much as the port has room for."""
        per_tick = load()["network"]["nic_bps"] / 8 * TICK_S
        out: Array = self.ticks.knob("nic_load_ratio") * per_tick * self.ticks.knob("nic_rate_ratio")
        return out

    @cached_property
    def front_rx(self) -> Array:
        """Bytes into the front-end ports: requests, downloads, caches over TCP."""
        run = self.ticks.run
        host = np.array([r.hosts[0] for r in run.cluster.replicas])[np.maximum(run.replica, 0)]
        asked = 600 + 4.0 * run.counts[:, 0]
        requests = self.ticks.binned(run.demand.at_s[run.replica >= 0], host[run.replica >= 0],
                                     run.cluster.hosts, asked[run.replica >= 0])  # fmt: skip
        acks = self.front_answers * 0.06
        return requests + acks + self._rate("front_fetch_ratio") + self.front_kv_rx

    @cached_property
    def front_answers(self) -> Array:
        """Bytes of answers out of the front-end ports."""
        tokens, run = self.ticks.tokens, self.ticks.run
        host = np.array([r.hosts[0] for r in run.cluster.replicas])[run.replica[tokens.request]]
        return self.ticks.binned(tokens.sent_s, host, run.cluster.hosts, CHUNK_BYTES)

    @cached_property
    def front_tx(self) -> Array:
        """Bytes out of the front-end ports."""
        return self.front_answers + self._rate("front_load_ratio") + self.front_kv_tx

    def _rate(self, knob: str) -> Array:
        per_tick = load()["network"]["front_bps"] / 8 * TICK_S
        out: Array = self.ticks.knob(knob) * per_tick
        return out

    @cached_property
    def slot_rx(self) -> Array:
        """Bytes towards each GPU over its slot: inputs, RDMA into its memory, what others copy."""
        return self._slot(self.rdma_rx)

    @cached_property
    def slot_tx(self) -> Array:
        """Bytes from each GPU over its slot."""
        return self._slot(self.rdma_tx)

    def _slot(self, rdma: Array) -> Array:
        t, host = self.ticks, load()["host"]
        steps = t.to_gpus(t.steps) * STEP_PCIE_BYTES
        others = t.knob("pcie_load_ratio") * host["pcie_bps"] * TICK_S
        detour = np.repeat(t.knob("p2p_off"), GPUS, axis=1) * self.nvlink
        out: Array = steps + rdma + others + detour
        return out

    @cached_property
    def nvlink_seen(self) -> Array:
        """Bytes over NVLink: none where peers copy through the host."""
        out: Array = self.nvlink * (1 - np.repeat(self.ticks.knob("p2p_off"), GPUS, axis=1))
        return out
