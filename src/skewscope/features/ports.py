"""Load of each host's port: rate, ceiling, what fills it, and whether a queue stands behind it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from skewscope.core.features import FeatureColumn, FeatureRows, FeatureSpec, Slice, nan_rows
from skewscope.core.tables import Array
from skewscope.features.graph import GraphRows

RECENT = 10
"""Slices (1 s) over which a rate must hold to be called sustained."""

MAX_HOSTS = 4096


class Ports:
    """Per host and the busier direction of its port."""

    SPEC = FeatureSpec(
        "port",
        "port of a host, in the direction that carries more",
        {
            "rate_bps": FeatureColumn("bit/s", "mean rate of the last second"),
            "rate_low_bps": FeatureColumn("bit/s", "10th percentile of the rate over slices of that second"),
            "ceiling_bps": FeatureColumn("bit/s", "largest rate of any slice so far"),
            "plateau_ratio": FeatureColumn("1", "10th percentile over the ceiling: 1 = flat at its top"),
            "bulk_share": FeatureColumn("1", "share of bytes that are neither collectives nor HTTP"),
            "top_share": FeatureColumn("1", "share of the largest sender or receiver on the other side"),
            "top_peer": FeatureColumn("1", "address id of that peer"),
            "into": FeatureColumn("1", "1 = the direction towards the host, 0 = from it"),
            "delay_ratio": FeatureColumn(
                "1", "growth of the delay on its link over the usual time per round"
            ),
            "lost": FeatureColumn("1", "copies lost on the host's link in the last second"),
        },
    )
    NEEDS: Sequence[str] = ("host", "link")

    def __init__(self) -> None:
        self._rates: dict[int, deque[tuple[float, float, float]]] = {}
        self._ceiling: dict[int, float] = {}
        self._peers: dict[int, deque[dict[int, float]]] = {}

    def update(self, slice_: Slice, others: Mapping[str, FeatureRows]) -> FeatureRows:
        """Absorb one slice."""
        graph = cast(GraphRows, others["host"])
        link = others["link"]
        self._count(slice_, graph)
        hosts = sorted(self._rates)[:MAX_HOSTS]
        columns = {name: nan_rows(len(hosts)) for name in self.SPEC.columns}
        names = slice_.directory.addresses
        at = {key: i for i, key in enumerate(link.keys)}
        for i, h in enumerate(hosts):
            recent = np.array(self._rates[h])
            if len(recent) < RECENT // 2:
                continue
            into = recent[:, 0].sum() >= recent[:, 1].sum()
            rate = recent[:, 0 if into else 1]
            self._ceiling[h] = max(self._ceiling.get(h, 0.0), float(rate.max()))
            columns["rate_bps"][i], columns["rate_low_bps"][i] = rate.mean(), np.quantile(rate, 0.1)
            columns["ceiling_bps"][i] = self._ceiling[h]
            columns["plateau_ratio"][i] = columns["rate_low_bps"][i] / max(self._ceiling[h], 1.0)
            columns["bulk_share"][i] = recent[:, 2].sum() / max(recent[:, :2].sum(), 1.0)
            columns["into"][i] = float(into)
            self._top(columns, i, h)
            if names[h] in at:
                row = at[names[h]]
                columns["delay_ratio"][i] = link.columns["delay_ratio"][row]
                columns["lost"][i] = link.columns["lost"][row]
        return FeatureRows("port", [names[h] for h in hosts], columns)

    def _count(self, slice_: Slice, graph: GraphRows) -> None:
        p = slice_.tables["packets"]
        flow, way = p["flow"].astype(np.int64), p["way"].astype(np.int64)
        seconds = (slice_.end_ns - slice_.start_ns) / 1e9
        bits = p["wire_bytes"].astype(np.float64) * 8 / seconds
        bulk = ~graph.collective[flow] & (graph.server[flow] < 0)
        client = graph.is_client()
        ins = graph.vantage[flow, 1 - way] == p["tap"]
        outs = graph.vantage[flow, way] == p["tap"]
        hosts = np.unique(np.concatenate([p["dst"][ins], p["src"][outs]])).astype(np.int64)
        known = {int(h) for h in hosts if h > 0 and not client[h] and graph.own_tap[h] >= 0}
        for h in sorted(known | set(self._rates)):
            mine_in, mine_out = ins & (p["dst"] == h), outs & (p["src"] == h)
            row = (bits[mine_in].sum(), bits[mine_out].sum(), bits[(mine_in | mine_out) & bulk].sum())
            rate = (float(row[0]), float(row[1]), float(row[2]))
            self._rates.setdefault(h, deque(maxlen=RECENT)).append(rate)
            self._peers.setdefault(h, deque(maxlen=RECENT)).append(_by_peer(p["src"][mine_in], bits[mine_in]))

    def _top(self, columns: dict[str, Array], i: int, h: int) -> None:
        total: dict[int, float] = {}
        for tick in self._peers[h]:
            for peer, amount in tick.items():
                total[peer] = total.get(peer, 0.0) + amount
        if total:
            peer = max(total, key=lambda a: total[a])
            columns["top_peer"][i] = peer
            columns["top_share"][i] = total[peer] / max(sum(total.values()), 1.0)


def _by_peer(peer: Array, bits: Array) -> dict[int, float]:
    ids, where = np.unique(peer, return_inverse=True)
    return dict(zip(ids.tolist(), np.bincount(where, bits).tolist(), strict=True)) if len(ids) else {}


FEATURE = Ports
