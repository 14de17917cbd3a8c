"""Counters of RDMA ports, network devices and slots: sysfs and ethtool as an agent on each host sees them."""

from __future__ import annotations

import numpy as np

from skewscope.core.tables import Array
from skewscope.lab.sim.cluster import GPUS, Cluster
from skewscope.lab.sim.params import load
from skewscope.lab.sim.ticks import TICK_S
from skewscope.lab.sim.vantage.job import Job
from skewscope.lab.sim.vantage.traffic import Traffic

CACHE_S = 0.012
"""The driver answers from its cache for up to 12 ms (sysfs `lifespan` of an H100 host)."""
PAUSE_US = 30e-6
GEN_TRANSFERS = {1: 2.5e9, 3: 8e9, 4: 16e9, 5: 32e9}


def peers(cluster: Cluster) -> list[list[int]]:
    """Return for each port the ports that send to it: the same rail of its group's or pool's other hosts."""
    out: list[list[int]] = [[] for _ in range(cluster.hosts * GPUS)]
    prefill, decode = cluster.pool("prefill"), cluster.pool("decode")
    for r in cluster.replicas:
        others = r.hosts
        if r.role != "mixed":
            pool = decode if r.role == "prefill" else prefill
            others = (*r.hosts, *(h for p in pool for h in cluster.replicas[p].hosts))
        for h in r.hosts:
            for k in range(GPUS):
                out[h * GPUS + k] = [o * GPUS + k for o in others if o != h]
    return out


class Errors:
    """Errors and marks of RDMA ports per tick, shape (ticks, GPUs), on the side that counts them."""

    def __init__(self, traffic: Traffic, rng: np.random.Generator) -> None:
        t, cluster = traffic.ticks, traffic.ticks.run.cluster
        mtu = load()["network"]["mtu_bytes"]
        shape = traffic.rdma_rx.shape
        packets_rx, packets_tx = traffic.rdma_rx / mtu, traffic.rdma_tx / mtu
        self.packets_rx, self.packets_tx = (
            packets_rx + traffic.writes_rx,
            packets_tx + traffic.writes_rx * 0.5,
        )
        lost = rng.poisson(np.minimum(self.packets_rx * t.knob("nic_loss_ratio"), 1e9))
        rnr = rng.poisson(t.knob("nic_rnr_per_s") * TICK_S * (self.packets_rx > 0))
        overtaken = rng.poisson(np.minimum(self.packets_rx * t.knob("nic_reorder_ratio"), 1e9))
        self.out_of_sequence, self.out_of_buffer = (lost + overtaken).astype(float), rnr.astype(float)
        links = np.array([cluster.uplink_of(g) for g in range(cluster.hosts * GPUS)])
        full = np.clip((t.knob("link_load_ratio")[:, links] - 0.45) / 0.5, 0, 1)
        # Micro-bursts mark a packet in 20,000 on a healthy fabric too (ours).
        marks = rng.poisson(packets_tx * np.maximum(full * 0.5, 5e-5))
        # A notification point sends at most one CNP per 50 us and flow.
        cnps = np.minimum(np.ceil(marks * 0.2), TICK_S / 50e-6 * 0.5)
        self.seq_err, self.marked, self.cnp_sent = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.rnr_nak, self.paused_by_peer = np.zeros(shape), np.zeros(shape)
        pause = t.knob("nic_pause_ratio") * (self.packets_rx > 0)
        self.pause_s = pause * TICK_S
        for g, senders in enumerate(peers(cluster)):
            for s in senders:
                share = 1 / len(senders)
                self.seq_err[:, s] += lost[:, g] * share
                self.rnr_nak[:, s] += rnr[:, g] * share
                self.paused_by_peer[:, s] = np.maximum(self.paused_by_peer[:, s], self.pause_s[:, g])
                self.marked[:, g] += marks[:, s] * share
                self.cnp_sent[:, g] += cnps[:, s] * share
        self.cnp_handled = cnps
        self.adaptive = self.seq_err * 0.4 + rng.poisson(0.0005 * TICK_S, shape)
        fails = np.zeros(shape)
        for transfer in t.run.transfers:
            if transfer.failed:
                host = cluster.replicas[transfer.source].hosts[0]
                at = int(transfer.start_s / TICK_S)
                if at < t.count:
                    fails[at, host * GPUS : (host + 1) * GPUS] += 1
        self.ack_timeouts = rng.poisson(np.minimum(self.seq_err * 0.03, 1e6)) + fails * 6
        self.cqe_errors = fails
        self.adaptive += fails * 8


def rdma(traffic: Traffic, errors: Errors, rng: np.random.Generator) -> Job:
    """Return the job that reads /sys/class/infiniband of every host."""
    t, cluster = traffic.ticks, traffic.ticks.run.cluster
    numbers = range(cluster.hosts * GPUS)
    targets = [cluster.addresses[g // GPUS] for g in numbers]
    job = Job("sysfs_infiniband", [cluster.nic(g) for g in numbers], targets, t.run.duration_s, rng)

    def count(name: str, ticks: Array, start: float = 40.0) -> None:
        job.counter(name, ticks, start=start, cached_s=CACHE_S)

    up = 1 - t.knob("nic_down")
    sent = (traffic.rdma_tx + traffic.rdma_others_tx) * up
    count("port.rcv_bytes", traffic.rdma_rx * up, 1e14)
    count("port.xmit_bytes", sent, 1e14)
    count("port.rcv_packets", errors.packets_rx * up, 1e11)
    count("port.xmit_packets", (errors.packets_tx + traffic.rdma_others_tx / 4096) * up, 1e11)
    busy = np.clip(sent / (load()["network"]["nic_bps"] / 8 * TICK_S), 0, 1)
    waits = 1e4 * (0.2 + rng.random(busy.shape)) + 4e6 * busy**2 + 2e7 * errors.paused_by_peer / TICK_S
    count("port.xmit_wait", waits, 4e9)
    count("port.symbol_error", rng.poisson(t.knob("nic_symbol_per_s") * TICK_S).astype(float), 3)
    downs = np.diff(t.knob("nic_down"), axis=0, prepend=0.0) > 0
    # The narrow counter of one port in ten is at its ceiling already, as in the H100 sample: it says nothing.
    count("port.link_downed", downs.astype(float), 3)
    stuck = rng.random(len(job.entities)) < 0.1
    last = job.columns.pop()
    job.add("port.link_downed", np.where(stuck, 255.0, last.values))
    job.gauge("port.state", np.where(up > 0, 4.0, 1.0))
    job.gauge("port.rate_bps", np.full(busy.shape, load()["network"]["nic_bps"]) * t.knob("nic_rate_ratio"))
    count("rdma.out_of_buffer", errors.out_of_buffer)
    count("rdma.out_of_sequence", errors.out_of_sequence)
    count("rdma.packet_seq_err", errors.seq_err)
    count("rdma.rnr_nak_retry_err", errors.rnr_nak)
    count("rdma.local_ack_timeout_err", errors.ack_timeouts.astype(float), 6)
    count("rdma.roce_adp_retrans", errors.adaptive, 10)
    count("rdma.np_cnp_sent", errors.cnp_sent, 1e6)
    count("rdma.np_ecn_marked_roce_packets", errors.marked, 1e7)
    count("rdma.rp_cnp_handled", errors.cnp_handled, 1e6)
    count("rdma.rx_write_requests", traffic.writes_rx, 4.2e9)
    count("rdma.req_cqe_error", errors.cqe_errors, 3)
    return job


def devices(traffic: Traffic, errors: Errors, rng: np.random.Generator) -> Job:
    """Return the job that runs ethtool -S on the RDMA ports' network devices and the front-end ports."""
    t, cluster = traffic.ticks, traffic.ticks.run.cluster
    numbers = range(cluster.hosts * GPUS)
    entities = [f"{cluster.addresses[g // GPUS]}/rdma{g % GPUS}" for g in numbers]
    entities += [cluster.front_port(h) for h in range(cluster.hosts)]
    targets = [e.split("/")[0] for e in entities]
    job = Job("ethtool", entities, targets, t.run.duration_s, rng)
    no_front = np.zeros((t.count, cluster.hosts))
    no_rdma = np.zeros((t.count, cluster.hosts * GPUS))

    def both(rdma_part: Array, front_part: Array) -> Array:
        return np.concatenate([rdma_part, front_part], axis=1)

    tx = both(traffic.rdma_tx + traffic.rdma_others_tx, traffic.front_tx)
    rx = both(traffic.rdma_rx, traffic.front_rx)
    job.counter("eth.rx_bytes_phy", rx, start=1e14)
    job.counter("eth.tx_bytes_phy", tx, start=1e14)
    job.counter("eth.rx_vport_rdma_unicast_bytes", both(traffic.rdma_rx, no_front), start=1e14)
    job.counter("eth.tx_vport_rdma_unicast_bytes", both(traffic.rdma_tx, no_front), start=1e14)
    discards = rng.poisson(traffic.front_rx / 1448 * t.knob("ingress_loss_ratio"))
    job.counter("eth.rx_discards_phy", both(no_rdma, discards * 0.7), start=900)
    job.counter("eth.rx_out_of_buffer", both(no_rdma, discards * 0.3), start=900)
    drops = rng.poisson(np.maximum(traffic.front_tx / 1448 * (t.knob("front_load_ratio") > 0.95) * 1e-4, 0))
    job.counter("eth.tx_discards_phy", both(no_rdma, drops.astype(float)), start=20)
    job.counter("eth.tx_prio3_pause", both(errors.pause_s / PAUSE_US, no_front), start=200)
    job.counter("eth.rx_prio3_pause", both(errors.paused_by_peer / PAUSE_US, no_front), start=200)
    job.counter("eth.tx_prio3_pause_s", both(errors.pause_s, no_front), start=2, whole=False)
    job.counter("eth.rx_prio3_pause_s", both(errors.paused_by_peer, no_front), start=2, whole=False)
    symbols = rng.poisson(t.knob("nic_symbol_per_s") * TICK_S * 3).astype(float)
    job.counter("eth.rx_pcs_symbol_err_phy", both(symbols, no_front), start=10)
    downs = (np.diff(t.knob("nic_down"), axis=0, prepend=0.0) > 0).astype(float)
    job.counter("eth.link_down_events_phy", both(downs, no_front), start=3)
    ceiling = load()["host"]["pcie_bps"] * TICK_S * t.knob("nic_pcie_width") / 16
    stalls = np.clip((traffic.slot_tx / ceiling - 0.6) / 0.4, 0, 1) * 0.9
    stalls = np.maximum(stalls, 0.01 * (rng.random(stalls.shape) < 0.1))
    waiting = np.clip((traffic.slot_rx / ceiling - 0.6) / 0.4, 0, 1) * 0.9
    job.mean("pcie.stalled_read_ratio", both(stalls, no_front))
    job.mean("pcie.stalled_write_ratio", both(waiting, no_front))
    return job


def slots(traffic: Traffic, rng: np.random.Generator) -> Job:
    """Return the job that reads /sys/bus/pci of every host: GPUs, then RDMA ports."""
    t, cluster = traffic.ticks, traffic.ticks.run.cluster
    numbers = range(cluster.hosts * GPUS)
    entities = [pci(cluster, g) for g in numbers] + [pci(cluster, g, nic=True) for g in numbers]
    job = Job("sysfs_pci", entities, [e.split("/")[0] for e in entities], t.run.duration_s, rng)
    working = t.to_gpus(t.length_s) > 0
    seconds = int(2 / TICK_S)
    recent = np.stack([working[max(0, i - seconds) : i + 1].any(axis=0) for i in range(t.count)])
    generation = np.where(recent, t.knob("pcie_gen"), 1.0)  # an idle GPU's link rests at generation 1
    speed = np.vectorize(GEN_TRANSFERS.get, otypes=[float])(generation.astype(int))
    all_gen5 = np.full(speed.shape, GEN_TRANSFERS[5])
    job.gauge("pcie.link_transfers_per_s", np.concatenate([speed, all_gen5], axis=1))
    job.gauge("pcie.max_link_transfers_per_s", np.concatenate([all_gen5, all_gen5], axis=1))
    job.gauge("pcie.link_width", np.concatenate([t.knob("pcie_width"), t.knob("nic_pcie_width")], axis=1))
    job.gauge("pcie.max_link_width", np.full((t.count, len(entities)), 16.0))
    errors = rng.poisson((t.knob("pcie_aer_per_s") + 0.0002) * TICK_S).astype(float)
    both = np.concatenate([errors, np.zeros_like(errors)], axis=1)
    job.counter("pcie.aer_cor_rx_err", both * 0.6, start=4)
    job.counter("pcie.aer_cor_total", both, start=9)
    return job


def pci(cluster: Cluster, gpu: int, nic: bool = False) -> str:
    """Return the id of a GPU's slot or of its RDMA port's slot; the address is that of an HGX board."""
    return f"{cluster.addresses[gpu // GPUS]}/pci 0000:{0x1A + 0x10 * (gpu % GPUS) + (not nic):02x}:00.0"
