"""Who talks to whom, seen from where: vantage of each flow end, roles and groups, all learned."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from skewscope.core.features import FeatureColumn, FeatureRows, FeatureSpec, Slice
from skewscope.core.jit import njit
from skewscope.core.tables import Array, Table
from skewscope.features.bursts import MIN_BALANCE, MIN_PACKETS, WAIT_NS

OWN_SHARE = 0.95
"""Share of a tap's packets that must have a host at one end for the tap to be that host's own.
Broadcasts and a neighbour's flooded frames make up the rest."""

MAX_TRACKED_ADDRESSES = 1 << 16

COLLECTIVE_FRAMINGS = 3
"""Framings of `messages` up to this one are collective traffic: Gloo, NCCL over sockets and over RoCE."""
TAGGED, NCCL_SOCKET, NCCL_ROCE = 1, 2, 3
CLEAR_TO_SEND = 3
"""Kind of a message by which an NCCL receiver lets its sender go."""


@dataclass
class GraphRows(FeatureRows):
    """Rows per host, and the learned structure that other features index by id."""

    own_tap: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    """int32 (addresses,): the host's own tap, -1 = none."""
    judged_at: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    """int32 (addresses,): tap at which the host's own time can be told: its own, else a wide one (a
    mirror port that belongs to no host), -1 = none."""
    vantage: Array = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int32))
    """int32 (flows, 2): tap from which each end of a flow is judged, -1 = flow not seen yet."""
    ends: Array = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    """int64 (flows, 2): address id of each end."""
    server: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int8))
    """int8 (flows,): which end serves HTTP (0 or 1), -1 = unknown."""
    member: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int32))
    """int32 (addresses,): id of the collective group that the host belongs to, -1 = none."""
    groups: dict[int, list[int]] = field(default_factory=dict)
    """Group id (address id of its first member) -> address ids of the members, in address order."""
    collective: Array = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    """bool (flows,): flow carries collective traffic."""
    opaque: Array = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    """bool (flows,): flow is taken for a group's by its rhythm; its bytes are not understood."""
    serves: Array = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    """bool (addresses,): the host answers HTTP requests."""
    asks: Array = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    """bool (addresses,): the host sends HTTP requests."""

    def is_client(self) -> Array:
        """Return bool (addresses,): hosts outside the cluster, which ask and neither serve nor compute."""
        return self.asks & ~self.serves & (self.member < 0)


def grow(array: Array, size: int, fill: float) -> Array:
    """Return the array, enlarged along its first axis to at least `size` rows of `fill`."""
    if len(array) >= size:
        return array
    bigger = np.full((max(size, 2 * len(array), 64), *array.shape[1:]), fill, dtype=array.dtype)
    bigger[: len(array)] = array
    return bigger


def is_collective(messages: Table) -> Array:
    """Return bool (n,): rows of a `messages` table that belong to collectives."""
    return np.asarray(messages["framing"] <= COLLECTIVE_FRAMINGS)


class Graph:
    """Learns hosts, vantage points, roles and collective groups from traffic alone."""

    SPEC = FeatureSpec(
        "host",
        "traffic of a host at its own tap, or at the best tap that sees it",
        {
            "rx_bytes": FeatureColumn("bytes", "bytes received in the window"),
            "tx_bytes": FeatureColumn("bytes", "bytes sent in the window"),
            "rx_packets": FeatureColumn("1", "packets received in the window"),
            "tx_packets": FeatureColumn("1", "packets sent in the window"),
        },
    )
    NEEDS: Sequence[str] = ()

    def __init__(self) -> None:
        self._counts = np.zeros((0, 0), dtype=np.int64)  # (addresses, taps) packets
        self._tap_packets = np.zeros(0, dtype=np.int64)
        self._own = np.zeros(0, dtype=np.int32)
        self._judged = np.zeros(0, dtype=np.int32)
        self._first = np.zeros(0, dtype=np.int32)
        self._second = np.zeros(0, dtype=np.int32)
        self._ends = np.zeros((0, 2), dtype=np.int64)
        self._vantage = np.zeros((0, 2), dtype=np.int32)
        self._server = np.zeros(0, dtype=np.int8)
        self._collective = np.zeros(0, dtype=np.bool_)
        self._member = np.zeros(0, dtype=np.int32)
        self._groups: dict[int, list[int]] = {}
        self._opaque = np.zeros(0, dtype=np.bool_)
        self._data = np.zeros((0, 2), dtype=np.int32)
        self._since_ns = 0
        self._waited = False
        self._serves = np.zeros(0, dtype=np.bool_)
        self._asks = np.zeros(0, dtype=np.bool_)
        self._framed = np.zeros(0, dtype=np.bool_)

    def update(self, slice_: Slice, others: Mapping[str, FeatureRows]) -> GraphRows:
        """Absorb one slice."""
        packets = slice_.tables["packets"]
        self._reserve(slice_, len(slice_.directory.taps))
        if len(packets):
            self._learn_taps(packets)
            self._learn_flows(packets)
        self._learn_servers(slice_.tables["http"])
        self._learn_messages(slice_.tables["messages"], slice_.directory.addresses)
        self._learn_opaque(slice_, packets)
        return self._rows(slice_)

    def _reserve(self, slice_: Slice, taps: int) -> None:
        addresses, flows = len(slice_.directory.addresses), len(slice_.directory.flows)
        tracked = min(addresses, MAX_TRACKED_ADDRESSES)
        if self._counts.shape[1] < taps:
            wider = np.zeros((len(self._counts), taps), dtype=np.int64)
            wider[:, : self._counts.shape[1]] = self._counts
            self._counts = wider
            self._tap_packets = grow(self._tap_packets, taps, 0)
        self._counts = grow(self._counts, tracked, 0)
        self._own = grow(self._own, addresses, -1)
        self._judged = grow(self._judged, addresses, -1)
        self._member = grow(self._member, addresses, -1)
        self._serves = grow(self._serves, addresses, 0)
        self._asks = grow(self._asks, addresses, 0)
        self._framed = grow(self._framed, addresses, 0)
        self._first = grow(self._first, flows, -1)
        self._second = grow(self._second, flows, -1)
        self._ends = grow(self._ends, flows, 0)
        self._vantage = grow(self._vantage, flows, -1)
        self._server = grow(self._server, flows, -1)
        self._collective = grow(self._collective, flows, 0)
        self._opaque = grow(self._opaque, flows, 0)
        self._data = grow(self._data, flows, 0)

    def _learn_taps(self, packets: Table) -> None:
        width = self._counts.shape[1]
        _count(packets["tap"], packets["src"], packets["dst"], self._counts, self._tap_packets)
        share = self._counts / np.maximum(self._tap_packets[:width], 1)
        # Of several such taps the one that shows most of the host: another host's tap shows their pair only.
        most = np.where(share >= OWN_SHARE, self._counts, 0)
        own = np.where(most.any(axis=1), most.argmax(axis=1), -1).astype(np.int32)
        own[0] = -1
        narrow = np.zeros(width, dtype=np.bool_)
        narrow[own[own >= 0]] = True
        wide = np.where(narrow, 0, self._counts)
        at = wide.argmax(axis=1).astype(np.int32)
        self._judged[: len(own)] = np.where(own >= 0, own, np.where(wide.max(axis=1) > 0, at, -1))
        if not np.array_equal(own, self._own[: len(own)]):
            self._own[: len(own)] = own
            self._choose(np.flatnonzero(self._first >= 0))

    def _learn_flows(self, packets: Table) -> None:
        flow, tap = packets["flow"].astype(np.int64), packets["tap"]
        known = self._first[flow]
        fresh = np.flatnonzero((flow > 0) & ((known < 0) | ((known != tap) & (self._second[flow] != tap))))
        if not len(fresh):
            return
        unique, at = np.unique(flow[fresh] * 65536 + tap[fresh], return_index=True)
        flows, taps, rows = unique // 65536, (unique % 65536).astype(np.int32), fresh[at]
        way = packets["way"][rows].astype(np.int64)
        self._ends[flows, way] = packets["src"][rows]
        self._ends[flows, 1 - way] = packets["dst"][rows]
        first, second = self._first[flows], self._second[flows]
        # Of three taps and more on a flow the ends' own ones are remembered.
        own = (self._own[self._ends[flows]] == taps[:, None]).any(axis=1)
        new = (first < 0) | ((first != taps) & ((second < 0) | (own & (second != taps))))
        if not new.any():
            return
        for f, tap in zip(flows[new], taps[new], strict=True):
            if self._first[f] < 0:
                self._first[f] = tap
            elif self._first[f] != tap and self._second[f] < 0:
                self._second[f] = tap
            elif tap not in (self._first[f], self._second[f]) and tap in self._own[self._ends[f]]:
                taken = self._second[f] in self._own[self._ends[f]]
                (self._first if taken else self._second)[f] = tap
        self._choose(np.unique(flows[new]))

    def _choose(self, flows: Array) -> None:
        """Pick, for both ends of some flows, the end's own tap where it sees the flow."""
        for end in (0, 1):
            own = self._own[self._ends[flows, end]]
            seen = (own >= 0) & ((own == self._first[flows]) | (own == self._second[flows]))
            self._vantage[flows, end] = np.where(seen, own, self._first[flows])

    def _learn_servers(self, http: Table) -> None:
        requests, responses = http["kind"] == 1, http["kind"] == 2
        self._server[http["flow"][requests]] = 1 - http["way"][requests]
        self._server[http["flow"][responses]] = http["way"][responses]
        self._serves[http["dst"][requests]] = True
        self._serves[http["src"][responses]] = True
        self._asks[http["src"][requests]] = True
        self._asks[http["dst"][responses]] = True

    def _learn_opaque(self, slice_: Slice, packets: Table) -> None:
        """Take unframed flows with a rhythm of both directions between inner hosts for a group's."""
        self._since_ns = self._since_ns or slice_.start_ns
        flow, way = packets["flow"].astype(np.int64), packets["way"].astype(np.int64)
        rows = (
            (packets["proto"] == 6)
            & (packets["payload_bytes"] > 0)
            & (self._vantage[flow, way] == packets["tap"])
        )
        np.add.at(self._data.ravel(), 2 * flow[rows] + way[rows], 1)
        if slice_.end_ns - self._since_ns < WAIT_NS:
            return
        # Only what was seen now has changed; the first time, what came before counts as well.
        flows = np.unique(flow[rows]) if self._waited else np.arange(len(self._data))
        self._waited = True
        low, high = self._data[flows].min(axis=1), self._data[flows].max(axis=1)
        busy = flows[(low >= MIN_PACKETS) & (low >= MIN_BALANCE * high) & ~self._collective[flows]]
        inner = ~(self._asks & ~self._serves & (self._member < 0))
        a, b = self._ends[busy, 0], self._ends[busy, 1]
        unframed = (self._server[busy] < 0) & inner[a] & inner[b] & ~self._framed[a] & ~self._framed[b]
        self._opaque[busy[unframed]] = True
        self._learn_groups(busy[unframed], slice_.directory.addresses)

    def _learn_messages(self, messages: Table, addresses: Sequence[str]) -> None:
        """Take flows with collective messages for a group's; a clear to send alone makes no group."""
        clears = (messages["framing"] == NCCL_ROCE) & (messages["kind"] == CLEAR_TO_SEND)
        kept = is_collective(messages) & (messages["flow"] > 0)
        self._learn_groups(np.unique(messages["flow"][kept & ~clears]), addresses)
        src, dst = messages["src"], messages["dst"]
        same = kept & clears & (self._member[src] >= 0) & (self._member[src] == self._member[dst])
        self._collective[messages["flow"][same]] = True

    def _learn_groups(self, flows: Array, addresses: Sequence[str]) -> None:
        new = flows[~self._collective[flows]] if len(flows) else flows
        if not len(new):
            return
        self._collective[new] = True
        for f in new:
            a, b = int(self._ends[f, 0]), int(self._ends[f, 1])
            ga, gb = int(self._member[a]), int(self._member[b])
            joined = set(self._groups.pop(ga, [a])) | set(self._groups.pop(gb, [b]))
            members = sorted(joined, key=lambda m: _order(addresses[m]))
            if not self._opaque[f]:
                self._framed[members] = True
            self._groups[members[0]] = members
            self._member[members] = members[0]

    def _rows(self, slice_: Slice) -> GraphRows:
        packets = slice_.tables["packets"]
        hosts, columns = self._traffic(packets)
        keys = [slice_.directory.addresses[h] for h in hosts]
        return GraphRows(
            "host",
            keys,
            columns,
            own_tap=self._own,
            judged_at=self._judged,
            vantage=self._vantage,
            ends=self._ends,
            server=self._server,
            member=self._member,
            groups=self._groups,
            collective=self._collective,
            opaque=self._opaque,
            serves=self._serves,
            asks=self._asks,
        )

    def _traffic(self, packets: Table) -> tuple[Array, dict[str, Array]]:
        flow, way, tap = packets["flow"], packets["way"].astype(np.int64), packets["tap"]
        out = self._vantage[flow, way] == tap
        into = self._vantage[flow, 1 - way] == tap
        size = packets["wire_bytes"].astype(np.float64)
        top = len(self._own)
        tx_n = np.bincount(packets["src"][out], minlength=top)
        rx_n = np.bincount(packets["dst"][into], minlength=top)
        hosts = np.flatnonzero((tx_n + rx_n) * (np.arange(top) > 0))
        columns = {
            "rx_bytes": np.bincount(packets["dst"][into], size[into], minlength=top)[hosts],
            "tx_bytes": np.bincount(packets["src"][out], size[out], minlength=top)[hosts],
            "rx_packets": rx_n[hosts].astype(np.float64),
            "tx_packets": tx_n[hosts].astype(np.float64),
        }
        return hosts, columns


@njit
def _count(tap: Array, src: Array, dst: Array, counts: Array, packets: Array) -> None:
    """Count packets, with columns of shape (n,): counts (addresses, taps) and packets (taps,) in place."""
    for i in range(len(tap)):
        if src[i] > 0:
            packets[tap[i]] += 1
            if src[i] < len(counts):
                counts[src[i], tap[i]] += 1
        if 0 < dst[i] < len(counts):
            counts[dst[i], tap[i]] += 1


def _order(address: str) -> tuple[int, int]:
    parsed = ipaddress.ip_address(address)
    return parsed.version, int(parsed)


FEATURE = Graph
