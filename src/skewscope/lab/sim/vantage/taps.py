"""What taps at front-end ports and RDMA ports see: packets, HTTP elements, collective messages.

One packet row stands for one HTTP element or message: the byte stream is complete and in order, but there
are no acknowledgements, no losses and no segments. What needs those is recorded by the live bed.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.directory import Directory, Flow, Tap
from skewscope.core.schemas import HTTP, MESSAGES, PACKETS
from skewscope.core.tables import Array, Table
from skewscope.lab.sim.cluster import GPUS, PORT, Cluster, Replica
from skewscope.lab.sim.compiled import kernel as k
from skewscope.lab.sim.output import Tokens
from skewscope.lab.sim.rates import crossings
from skewscope.lab.sim.ticks import Ticks
from skewscope.lab.sim.vantage.traffic import CHUNK_BYTES
from skewscope.lab.sim.world import Run

ROCE_PORT = 4791
NCCL_ROCE, DATA, CLEAR_TO_SEND, ALL_REDUCE = 3, 1, 3, 4
HEAD, ANSWER, CHUNK, END = 1, 2, 3, 4
FIRST_PORT = 20_000


def http(ticks: Ticks, directory: Directory, addresses: dict[str, int], start_ns: int) -> dict[str, Table]:
    """Return packets and HTTP elements at the front-end port of every serving host: the gateway's requests.

    Each request has a connection of its own; chunks come as the serving layer sends them.
    """
    run, cluster, tokens = ticks.run, ticks.run.cluster, ticks.tokens
    taps = _taps(directory, [f"front:{a}" for a in cluster.addresses])
    hosts = np.array([r.hosts[0] for r in cluster.replicas])
    entry = np.array([r.index for r in cluster.replicas])
    # A request's stream is with the replica that prefilled it until its cache has moved: the gateway's leg
    # ends at the one that it asked.
    asked = np.where(run.prefilled_by >= 0, run.prefilled_by, run.replica)
    sent = np.flatnonzero(asked >= 0)
    host = hosts[entry[np.maximum(asked, 0)]]
    base = len(directory.flows)
    flow_of = np.zeros(len(run), np.int64)
    flow_of[sent] = base + np.arange(len(sent))
    gateway = addresses[cluster.gateway]
    ids = np.array([addresses[a] for a in cluster.addresses])
    directory.flows.extend(
        Flow(gateway, FIRST_PORT + n % 40_000, int(ids[host[q]]), PORT, 6) for n, q in enumerate(sent)
    )
    at, q, kind, size = _elements(run, tokens, sent)
    way = (kind != HEAD).astype(np.uint8)
    rows = _packet_rows(at, flow_of[q], way, size, taps[host[q]], start_ns)
    rows["src"] = np.where(way == 0, gateway, ids[host[q]])
    rows["dst"] = np.where(way == 0, ids[host[q]], gateway)
    rows["sport"] = np.where(way == 0, FIRST_PORT + (flow_of[q] - base) % 40_000, PORT)
    rows["dport"] = np.where(way == 0, PORT, FIRST_PORT + (flow_of[q] - base) % 40_000)
    shared = {n: rows[n] for n in ("ts_ns", "tap", "frame", "flow", "way", "src", "dst")}
    target = directory.target("/v1/chat/completions")
    return {
        "packets": Table(PACKETS, rows),
        "http": Table(
            HTTP,
            {
                **shared,
                "kind": kind,
                "status": np.where(kind == ANSWER, 200, 0),
                "method": np.where(kind == HEAD, 2, 0),
                "target": np.where(kind == HEAD, target, 0),
                "streaming": np.where(kind == ANSWER, 1, 0),
                "nbytes": np.where(kind == END, 0, size),
                "events": (kind == CHUNK).astype(np.uint16),
            },
        ),
    }


def _elements(run: Run, tokens: Tokens, sent: Array) -> tuple[Array, Array, Array, Array]:
    """Return time, request, kind and bytes of every HTTP element, in the order of time."""
    first, last = tokens.first, tokens.last
    ended = run.times[tokens.request[last], k.Q_END] > 0
    parts = [
        (run.demand.at_s[sent] + 0.0005, sent, HEAD, 300 + 4 * run.counts[sent, k.N_PROMPT]),
        (tokens.sent_s[first] - 1e-6, tokens.request[first], ANSWER, np.full(len(first), 180)),
        (tokens.sent_s, tokens.request, CHUNK, np.full(len(tokens.request), CHUNK_BYTES)),
        (tokens.sent_s[last][ended] + 2e-6, tokens.request[last][ended], END, np.full(int(ended.sum()), 19)),
    ]
    at, q, size = (np.concatenate([p[n] for p in parts]) for n in (0, 1, 3))
    kind = np.concatenate([np.full(len(p[0]), p[2]) for p in parts])
    order = np.argsort(at, kind="stable")
    order = order[at[order] < run.duration_s]
    return at[order], q[order], kind[order], size[order]


def _taps(directory: Directory, names: list[str]) -> Array:
    begin = len(directory.taps)
    directory.taps += [Tap(begin + n, name) for n, name in enumerate(names)]
    return np.arange(begin, begin + len(names))


def _packet_rows(
    at_s: Array, flow: Array, way: Array, size: Array, tap: Array, start_ns: int
) -> dict[str, Array]:
    """Return columns of the packets table; sequence numbers follow the bytes of each flow and way."""
    lane = flow * 2 + way
    order = np.argsort(lane, kind="stable")
    total = np.cumsum(size[order]) - size[order]
    fresh = np.append(True, lane[order][1:] != lane[order][:-1]) if len(order) else np.zeros(0, bool)
    begin = np.maximum.accumulate(np.where(fresh, total, 0)) if len(order) else total
    seq = np.empty(len(order), np.int64)
    seq[order] = total - begin + 1
    frame = np.empty(len(order), np.int64)
    for one in np.unique(tap):
        mine = tap == one
        frame[mine] = np.arange(1, int(mine.sum()) + 1)
    return {
        "ts_ns": start_ns + (at_s * 1e9).astype(np.int64),
        "tap": tap,
        "frame": frame,
        "flow": flow,
        "way": way,
        "proto": np.full(len(flow), 6),
        "wire_bytes": size + 66,
        "payload_bytes": size,
        "captured_bytes": np.minimum(size, 128),
        "payload_at": np.full(len(flow), -1),
        "seq": seq,
        "flags": np.full(len(flow), 24),
        "window": np.full(len(flow), 65535),
    }


def collectives(
    ticks: Ticks, directory: Directory, addresses: dict[str, int], start_ns: int, span_s: tuple[float, float],
    rails: int = GPUS,
) -> Table:  # fmt: skip
    """Return the messages between the hosts of each group, as taps at the RDMA ports see them.

    A rail's ring sends from each host to the next once per collective. What is on the wire begins when the
    slowest rank of the sending host has entered: inside a host ranks talk over NVLink, which no tap sees.
    So a late rank shows as a late host. `span_s` bounds the time, as captures are short at such rates. Rows
    are in the order of steps, replica by replica.
    """
    cluster = ticks.run.cluster
    parts = [
        _of_replica(ticks, directory, addresses, start_ns, span_s, rails, r)
        for r in cluster.replicas
        if crossings(r) and len(r.hosts) > 1
    ]
    return Table.concat(MESSAGES, parts)


def _of_replica(
    ticks: Ticks, directory: Directory, addresses: dict[str, int], start_ns: int, span_s: tuple[float, float],
    rails: int, r: Replica,
) -> Table:  # fmt: skip
    run = ticks.run
    mine = run.steps[:, k.T_REPLICA] == r.index
    mine &= (run.steps[:, k.T_START] >= span_s[0]) & (run.steps[:, k.T_START] < span_s[1])
    steps, own = run.steps[mine], run.own_s[mine][:, : r.ranks].astype(float)
    count, hosts = crossings(r), len(r.hosts)
    late = own.reshape(len(steps), hosts, GPUS).max(axis=2) / count
    slowest = late.max(axis=1)
    transit = steps[:, k.T_NET] / count
    each = slowest + transit
    at = steps[:, k.T_START, None] + np.arange(count)[None, :] * each[:, None]
    # The shape of what follows: steps by collectives by hosts by rails.
    shape = (len(steps), count, hosts, rails)
    at_ns, late_ns = start_ns + (at * 1e9).astype(np.int64), (late * 1e9).astype(np.int64)
    begin = at_ns[:, :, None, None] + late_ns[:, None, :, None]
    end = at_ns + (each * 1e9).astype(np.int64)[:, None]
    message = (steps[:, k.T_PREFILL] + steps[:, k.T_BATCH]) * r.model.hidden * 2 / GPUS
    flow, tap, ids = _rails(run.cluster, directory, addresses, r, rails)
    tag = np.arange(1, len(steps) * count + 1, dtype=np.uint32).reshape(len(steps), count)
    rows = int(np.prod(shape))

    def column(values: Array, dtype: str) -> Array:
        """Return small axes as one whole column."""
        return np.broadcast_to(values.astype(dtype), shape).ravel()

    return Table(
        MESSAGES,
        {
            "ts_ns": column(begin, "int64"),
            "end_ns": column(end[:, :, None, None], "int64"),
            "tap": column(tap, "uint16"),
            "frame": np.arange(1, rows + 1, dtype=np.uint64),
            "flow": column(flow, "uint32"),
            "src": column(ids[:, None], "uint32"),
            "dst": column(np.roll(ids, -1)[:, None], "uint32"),
            "framing": np.full(rows, NCCL_ROCE, np.uint8),
            "kind": np.full(rows, DATA, np.uint8),
            "collective": np.full(rows, ALL_REDUCE, np.uint8),
            "tag": column(tag[:, :, None, None], "uint32"),
            "nbytes": column(message[:, None, None, None], "uint64"),
        },
    )


def _rails(
    cluster: Cluster, directory: Directory, addresses: dict[str, int], r: Replica, rails: int
) -> tuple[Array, Array, Array]:
    """Return flow and tap ids of (host, rail), and address ids of the hosts."""
    ids = np.array([addresses[cluster.addresses[h]] for h in r.hosts])
    tap = _taps(directory, [f"rdma:{cluster.nic(h * GPUS + n)}" for h in r.hosts for n in range(rails)])
    begin = len(directory.flows)
    for n, a in enumerate(ids):
        for rail in range(rails):
            b = int(ids[(n + 1) % len(ids)])
            directory.flows.append(Flow(int(a), 49_152 + rail * 16 + n, b, ROCE_PORT, 17))
    size = len(ids), rails
    return begin + np.arange(len(ids) * rails).reshape(size), tap.reshape(size), ids
