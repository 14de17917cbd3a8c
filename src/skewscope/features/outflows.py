"""Bytes that leave a host of the cluster for somebody with no part in it: no rank, no server, no client.

Who takes part is told by the graph: ranks of groups, endpoints, those who ask them, and every host with a
tap of its own. Everybody else is an outsider, and what a cluster host sends to one is counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from skewscope.core.features import FeatureColumn, FeatureRows, FeatureSpec, Slice
from skewscope.features.graph import GraphRows
from skewscope.features.transport import PairRows

RECENT = 10
"""Windows over which a rate is averaged: one second."""

PAUSE_NS = 2_000_000_000
"""A transfer that stood still for as long has ended; what follows is another."""

MIN_RATE_BPS = 1e5
"""Below this nobody carries a model away (10 GB would take nine days), and logs or metrics are sent."""

LEARN_NS = 500_000_000
"""To whom a host sends when the capture begins belongs to the usual: a baseline of half a second."""

MAX_TRANSFERS = 4096


@dataclass
class _Transfer:
    """What one host sent to one outsider."""

    begun_ns: int
    last_ns: int
    total_bytes: float = 0.0
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))


class Outflows:
    """Per cluster host: its largest transfer to an outsider."""

    SPEC = FeatureSpec(
        "outflow",
        "the largest transfer from a host of the cluster to one that has no part in it",
        {
            "foreign_bps": FeatureColumn("bit/s", "rate to that outsider, over a second"),
            "foreign_bytes": FeatureColumn("bytes", "sent to it since the transfer began"),
            "foreign_s": FeatureColumn("s", "time since it began"),
            "foreign_share": FeatureColumn("1", "share of all that the host sent in that second"),
        },
    )
    NEEDS: Sequence[str] = ("host", "pair")

    def __init__(self) -> None:
        self._transfers: dict[tuple[int, int], _Transfer] = {}
        self._sent: dict[int, deque[float]] = {}
        self._usual: set[tuple[int, int]] = set()
        self._since_ns: int | None = None

    def update(self, slice_: Slice, others: Mapping[str, FeatureRows]) -> FeatureRows:
        """Absorb one slice."""
        graph = cast(GraphRows, others["host"])
        pairs = cast(PairRows, others["pair"])
        size = pairs.columns["bytes"]
        inner = (graph.member >= 0) | graph.serves
        known = inner | graph.asks | (graph.own_tap >= 0)
        window_s = (slice_.end_ns - slice_.start_ns) / 1e9
        now: dict[tuple[int, int], float] = {}
        sent: dict[int, float] = {}
        for (a, b), i in pairs.pair_of.items():
            if not inner[a]:
                continue
            sent[a] = sent.get(a, 0.0) + float(size[i])
            if not known[b] and size[i] > 0:
                now[a, b] = float(size[i])
        for host in sent.keys() | self._sent.keys():
            self._sent.setdefault(host, deque(maxlen=RECENT)).append(sent.get(host, 0.0))
        self._absorb(now, slice_)
        best: dict[int, _Transfer] = {}
        for (a, b), transfer in self._transfers.items():
            if known[b]:  # it has shown its part since
                continue
            if a not in best or transfer.total_bytes > best[a].total_bytes:
                best[a] = transfer
        hosts = sorted(best)
        rate = np.array([8 * sum(best[h].recent) / (len(best[h].recent) * window_s) for h in hosts])
        all_ = np.array([max(sum(self._sent[h]), 1.0) for h in hosts])
        columns = {
            "foreign_bps": rate,
            "foreign_bytes": np.array([best[h].total_bytes for h in hosts]),
            "foreign_s": np.array([(slice_.end_ns - best[h].begun_ns) / 1e9 for h in hosts]),
            "foreign_share": np.array([sum(best[h].recent) for h in hosts]) / all_ if hosts else np.zeros(0),
        }
        onset = {"foreign_bytes": np.array([best[h].begun_ns for h in hosts], dtype=np.int64)}
        return FeatureRows("outflow", [slice_.directory.addresses[h] for h in hosts], columns, onset)

    def _absorb(self, now: dict[tuple[int, int], float], slice_: Slice) -> None:
        for key, transfer in list(self._transfers.items()):
            if slice_.end_ns - transfer.last_ns > PAUSE_NS:
                del self._transfers[key]
            elif key not in now:
                transfer.recent.append(0.0)
        if self._since_ns is None:
            self._since_ns = slice_.start_ns
        if slice_.end_ns - self._since_ns <= LEARN_NS:
            self._usual.update(list(now)[:MAX_TRANSFERS])
        for key, size in now.items():
            if key in self._usual:
                continue
            found = self._transfers.get(key)
            if found is None:
                if len(self._transfers) >= MAX_TRANSFERS:
                    continue
                found = self._transfers[key] = _Transfer(slice_.start_ns, slice_.end_ns)
            found.total_bytes += size
            found.recent.append(size)
            rate = 8 * size / ((slice_.end_ns - slice_.start_ns) / 1e9)
            found.last_ns = slice_.end_ns if rate >= MIN_RATE_BPS else found.last_ns


FEATURE = Outflows
