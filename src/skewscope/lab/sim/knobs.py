"""The physical settings of a cluster that faults change, each a value per GPU, host, replica or link.

A fault is nothing but a change of settings over time. What a counter or a log shows of it follows from
the same settings, so no signal is made for a fault alone.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np

from skewscope.core.tables import Array
from skewscope.lab.sim.cluster import GPUS, Cluster

GPU, HOST, REPLICA, LINK, WORLD = "gpu", "host", "replica", "link", "world"

KNOBS: dict[str, tuple[str, float, str]] = {
    # The accelerator and its process
    "gpu_slow_ratio": (GPU, 1.0, "multiplier of a rank's own time"),
    "gpu_prefill_ratio": (GPU, 1.0, "multiplier of its prefill part only"),
    "gpu_clock_ratio": (GPU, 1.0, "its SM clock over the usual one"),
    "gpu_throttle_bits": (GPU, 0.0, "clock event reasons as DCGM numbers them"),
    "gpu_hot_c": (GPU, 0.0, "degrees above the usual temperature"),
    "gpu_xid": (GPU, 0.0, "kernel messages with this Xid begin, one each 10 s"),
    "gpu_ecc_per_s": (GPU, 0.0, "corrected memory errors"),
    "profiler": (GPU, 0.0, "1: a profiler holds the counters that profiling fields are read from"),
    "expert_load_ratio": (GPU, 1.0, "tokens routed to its experts over an even share"),
    "rank_delay_s": (GPU, 0.0, "added to each of its steps"),
    "rank_late_ratio": (GPU, 0.0, "share of a step by which it is late when its turn is drawn"),
    "rank_cpu_ratio": (GPU, 0.0, "CPU time its process uses beyond the usual, in cores"),
    "rank_pause_s": (GPU, 0.0, "its process stops this long, once per rank_pause_period_s"),
    "rank_pause_period_s": (GPU, 5.0, "time between such pauses"),
    "train_bytes_ratio": (GPU, 1.0, "length of its sequences over the usual (training)"),
    # PCIe
    "pcie_width": (GPU, 16.0, "lanes of its slot under load"),
    "pcie_gen": (GPU, 5.0, "generation under load"),
    "nic_pcie_width": (GPU, 16.0, "lanes of the slot of its RDMA port"),
    "pcie_load_ratio": (GPU, 0.0, "other traffic over the slot's ceiling"),
    "pcie_aer_per_s": (GPU, 0.0, "corrected link errors and replays"),
    "p2p_off": (HOST, 0.0, "1: peers inside the host copy through host memory instead of NVLink"),
    "pageable": (HOST, 0.0, "1: copies from pageable memory"),
    # The host
    "cpu_busy_ratio": (HOST, 0.0, "CPU time of others over the host's cores"),
    "host_delay_s": (HOST, 0.0, "added to each step of every rank on it"),
    "host_pause_s": (HOST, 0.0, "all its processes stop this long, once per host_pause_period_s"),
    "host_pause_period_s": (HOST, 2.0, "time between such pauses"),
    "frontend_ratio": (HOST, 1.0, "multiplier of the API server's time per request"),
    "clock_step_s": (HOST, 0.0, "what the host's clock is ahead"),
    "heartbeat_late_s": (HOST, 0.0, "its heartbeats are this late at most"),
    # RDMA ports
    "nic_loss_ratio": (GPU, 0.0, "share of RDMA packets towards its port that are lost"),
    "nic_reorder_ratio": (GPU, 0.0, "share of RDMA packets that overtake others, without loss"),
    "nic_rnr_per_s": (GPU, 0.0, "times its receiver is not ready"),
    "nic_pause_ratio": (GPU, 0.0, "share of time in which its port tells the peer to pause"),
    "nic_rate_ratio": (GPU, 1.0, "its rate over the usual"),
    "nic_load_ratio": (GPU, 0.0, "bulk flows of others out of its port over its rate"),
    "nic_symbol_per_s": (GPU, 0.0, "symbol errors"),
    "nic_down": (GPU, 0.0, "1: the link is down"),
    "link_load_ratio": (LINK, 0.0, "traffic of others on a leaf's uplink over its rate"),
    # The front-end network
    "front_load_ratio": (HOST, 0.0, "bulk flow out of the front-end port over its rate"),
    "front_fetch_ratio": (HOST, 0.0, "bulk flow into the front-end port over its rate"),
    "front_upload_new": (HOST, 0.0, "1: the bulk flow goes to an address never seen before"),
    "ingress_loss_ratio": (HOST, 0.0, "share of packets from clients that are lost"),
    "egress_loss_ratio": (HOST, 0.0, "share of packets to clients that are lost"),
    # The engine
    "router_weight": (REPLICA, 1.0, "weight at the router"),
    "prepare_s": (REPLICA, 0.0, "before a request can be scheduled (preprocessing, copies to the GPU)"),
    "prepare_token_s": (REPLICA, 0.0, "the same, per prompt token"),
    "return_s": (REPLICA, 0.0, "from the end of a step to its tokens leaving, per step"),
    "egress_jitter_s": (REPLICA, 0.0, "spread of what the serving layer adds to each chunk"),
    "static_batching": (REPLICA, 0.0, "1: a batch is filled only when it is empty"),
    "kv_blocks_ratio": (REPLICA, 1.0, "KV memory over the usual"),
    "budget_ratio": (REPLICA, 1.0, "token budget of a step over the usual"),
    "stopped_until_s": (REPLICA, 0.0, "no step ends before this time of the run"),
    "probe_passes": (REPLICA, 0.0, "1: probes pass whatever happens"),
    "probe_fails": (REPLICA, 0.0, "1: probes fail whatever happens"),
    "probe_flaky_share": (REPLICA, 0.0, "share of probes that a tight limit fails"),
    "frozen": (REPLICA, 0.0, "1: the exporter repeats its last page"),
    "zeroed": (REPLICA, 0.0, "1: the exporter says 0 for its gauges"),
    "restarting": (REPLICA, 0.0, "1: takes no requests, its counters begin anew after"),
    "cold": (REPLICA, 0.0, "1: loads its weights, takes no requests"),
    # The transfer of caches, per receiving replica
    "kv_rate_ratio": (REPLICA, 1.0, "rate of caches moving to it over the usual"),
    "kv_tcp": (REPLICA, 0.0, "1: caches move over TCP on the front-end port"),
    "kv_delay_s": (REPLICA, 0.0, "silence before each transfer (registration)"),
    "kv_pieces": (REPLICA, 80.0, "pieces that a cache is moved in"),
    "kv_large_fails": (REPLICA, 0.0, "1: transfers above 16 MB never complete (path MTU)"),
    # Demand, clients and the router
    "prompt_ratio": (WORLD, 1.0, "prompt lengths over the usual"),
    "output_ratio": (WORLD, 1.0, "output lengths over the usual"),
    "sticky_share": (WORLD, 0.0, "share of requests that stay with one replica by session"),
    "router_poll_s": (WORLD, 0.0, "age of what the router knows; 0 = it counts itself"),
    "length_bias": (WORLD, 0.0, "1: long answers all go to one replica, in equal numbers of requests"),
    "hang_up_share": (WORLD, 0.0, "share of clients that leave early and are not noticed"),
    "slow_reader_share": (WORLD, 0.0, "share of clients that read too slowly"),
    "slow_upload_s": (WORLD, 0.0, "time that a request's bytes take to come in, to the culprit's replica"),
    "cached_share": (WORLD, 0.35, "share of prompt tokens found in the prefix cache"),
    "tokens_per_event": (WORLD, 1.0, "tokens in one streamed event"),
}  # fmt: skip
"""Name -> (axis, value in a healthy cluster, meaning)."""


def size_of(axis: str, cluster: Cluster) -> int:
    """Return how many values an axis has."""
    sizes = {
        GPU: cluster.hosts * GPUS,
        HOST: cluster.hosts,
        REPLICA: len(cluster.replicas),
        LINK: cluster.leaves * cluster.spines,
        WORLD: 1,
    }
    return sizes[axis]


@dataclass
class Settings:
    """The current value of every knob, and when each changed."""

    cluster: Cluster
    now: dict[str, Array] = field(default_factory=dict)
    _changes: dict[str, list[tuple[float, Array]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, (axis, value, _) in KNOBS.items():
            self.now[name] = np.full(size_of(axis, self.cluster), value)
            self._changes[name] = [(-np.inf, self.now[name].copy())]

    def set(self, at_s: float, name: str, places: list[int], value: float) -> None:
        """Change a knob at some places of its axis; times must not go back."""
        self.now[name][places] = value
        self._changes[name].append((at_s, self.now[name].copy()))

    def changed(self, name: str) -> bool:
        """Return whether a knob was ever moved."""
        return len(self._changes[name]) > 1

    def one(self, name: str) -> float:
        """Return the value of a knob of the world."""
        return float(self.now[name][0])

    def at(self, name: str, times_s: Array) -> Array:
        """Return the values at some times: shape (times, places)."""
        starts = [t for t, _ in self._changes[name]]
        if len(starts) == 1:
            return np.broadcast_to(self.now[name], (len(times_s), len(self.now[name])))
        rows = np.searchsorted(np.array(starts), times_s, side="right") - 1
        return np.stack([v for _, v in self._changes[name]])[rows]

    def was(self, name: str, at_s: float) -> Array:
        """Return the values at one time."""
        changes = self._changes[name]
        return changes[bisect_right([t for t, _ in changes], at_s) - 1][1]
