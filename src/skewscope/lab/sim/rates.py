"""From knobs to what the kernel computes with: step models, network times, each rank's multipliers."""

from __future__ import annotations

import numpy as np

from skewscope.core.tables import Array
from skewscope.lab.sim.cluster import GPUS, Cluster, Replica
from skewscope.lab.sim.compiled import kernel as k
from skewscope.lab.sim.knobs import Settings
from skewscope.lab.sim.params import collective_s, load

NO_BUDGET = 1_000_000
STEP_PCIE_BYTES = 4e6
"""What one step moves between host and GPU: inputs, block tables, sampled tokens (ours)."""


def net_tables(cluster: Cluster) -> Array:
    """Return s between nodes per step for 2^0, 2^1, ... tokens, shape (replicas, 20)."""
    tokens = 2.0 ** np.arange(20)
    out = np.zeros((len(cluster.replicas), 20))
    for r in cluster.replicas:
        message = tokens * r.model.hidden * 2
        if r.experts:  # two all-to-alls a layer: each rank sends most of its tokens to the other host
            out[r.index] = 2 * r.model.layers * collective_s(r.collective, message / r.ranks * 2)
        elif r.stages > 1:
            out[r.index] = (r.stages - 1) * collective_s("send_recv-2-h100", message / GPUS)
        elif r.collective:
            inside = collective_s("all_reduce-8-h100-graph", message)
            out[r.index] = (2 * r.model.layers + 1) * np.maximum(
                collective_s(r.collective, message) - inside, 0
            )
    return out


def crossings(replica: Replica) -> int:
    """Return how many collectives of a step cross nodes."""
    if replica.role == "training":
        return 2  # gradients: reduce-scatter and all-gather
    if replica.experts:
        return 2 * replica.model.layers
    if replica.stages > 1:
        return replica.stages - 1
    return 2 * replica.model.layers + 1 if replica.collective else 0


def config_of(cluster: Cluster, settings: Settings) -> Array:
    """Return the kernel's `config` for the knobs as they are."""
    now, noise = settings.now, load()["noise"]
    out = np.zeros((len(cluster.replicas), k.CONFIG_COLUMNS))
    for r in cluster.replicas:
        m, row = r.model, out[r.index]
        row[: k.C_BUDGET] = (
            m.decode_s, m.per_seq_s, m.per_kv_token_s, m.prefill_s, m.prefill_context_s, m.host_s,
            m.host_seq_s, m.host_prefill_s,
        )  # fmt: skip
        row[k.C_STEP_NOISE :] = noise["step_ratio"], noise["rank_ratio"], noise["outlier_share"]
        budget = r.budget * now["budget_ratio"][r.index]
        row[k.C_BUDGET] = min(budget, NO_BUDGET)
        row[k.C_BATCH] = min(r.max_batch, 256)
        row[k.C_BLOCKS] = r.kv_blocks * now["kv_blocks_ratio"][r.index]
        row[k.C_STATIC] = now["static_batching"][r.index]
        row[k.C_RANKS], row[k.C_STAGES] = r.ranks, r.stages
        row[k.C_DP] = r.ranks if r.data_parallel else 1
        row[k.C_EP], row[k.C_ENTRY] = r.experts, crossings(r)
        row[k.C_NET_MULT], row[k.C_NET_ADD] = network_of(cluster, settings, r)
    return out


def network_of(cluster: Cluster, settings: Settings, r: Replica) -> tuple[float, float]:
    """Return what the network multiplies the transit of a step by, and adds to it (s)."""
    count = crossings(r)
    if not count:
        return 1.0, 0.0
    now, params, gpus = settings.now, load()["network"], cluster.gpus_of(r.index)
    links = [cluster.uplink_of(g) for g in gpus]
    shared = max(float(now["nic_load_ratio"][gpus].max()), float(now["link_load_ratio"][links].max()))
    rate = float(now["nic_rate_ratio"][gpus].min()) * (
        1 - min(0.97, float(now["nic_pause_ratio"][gpus].max()))
    )
    # The slots of GPU and port feed the port; at the sizes of decoding latency hides half of it.
    rate *= float((pcie_ratio(settings) * now["nic_pcie_width"] / 16)[gpus].min()) ** 0.5
    mult = queue_factor(shared) / max(rate, 0.02)
    packets = count * 8 * 4  # 128 KiB pieces of a message, at the sizes of decoding
    add = packets * float(now["nic_loss_ratio"][gpus].sum()) * params["adaptive_retransmit_s"]
    add += params["rnr_timer_s"] * float(now["nic_rnr_per_s"][gpus].sum()) * 0.05
    if now["nic_down"][gpus].any():
        add += 1.0
    return mult, add


def queue_factor(load_ratio: float) -> float:
    """Return the growth of transit on a port of which others use a share: fair share and a queue."""
    used = min(load_ratio, 0.95)
    return 1.0 / (1.0 - used) + (2.0 * max(0.0, used - 0.5) if used else 0.0)


def pcie_ratio(settings: Settings) -> Array:
    """Return each slot's usable bandwidth over that of Gen5 x16."""
    now = settings.now
    ceiling = now["pcie_width"] / 16 * 2.0 ** (now["pcie_gen"] - 5)
    out: Array = ceiling * (1 - np.minimum(now["pcie_load_ratio"], 0.97))
    return out


def rank_settings(cluster: Cluster, settings: Settings, ranks: int) -> Array:
    """Return the kernel's `ranks`, shape (7, replicas, ranks), without pauses."""
    now, host_of = settings.now, load()["host"]
    out = np.ones((7, len(cluster.replicas), ranks))
    slots = pcie_ratio(settings)
    for r in cluster.replicas:
        gpus = np.array(cluster.gpus_of(r.index))
        hosts = gpus // GPUS
        row = out[:, r.index, : len(gpus)]
        row[k.R_SLOW] = now["gpu_slow_ratio"][gpus]
        row[k.R_PREFILL] = now["gpu_prefill_ratio"][gpus]
        copy = STEP_PCIE_BYTES / host_of["pcie_bps"]
        pageable = STEP_PCIE_BYTES / host_of["pageable_bps"] * now["pageable"][hosts]
        row[k.R_DELAY] = (
            now["rank_delay_s"][gpus] + now["host_delay_s"][hosts] + copy / slots[gpus] + pageable
        )
        # Without peer access every reduction goes through host memory: twice over the slot.
        detour = 2 * r.model.layers * 64 * r.model.hidden * 2 * 2 / host_of["pcie_bps"]
        row[k.R_DELAY] += now["p2p_off"][hosts] * detour
        row[k.R_PREFILL] *= np.where(slots[gpus] < 0.5, 1 + 0.15 * (1 / slots[gpus] - 1), 1.0)
        row[k.R_LATE] = now["rank_late_ratio"][gpus]
        row[k.R_LOAD] = now["expert_load_ratio"][gpus]
        out[k.R_DELAY, r.index, len(gpus) :] = 0.0
    return out
