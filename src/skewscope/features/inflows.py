"""Bulk that comes into hosts of the cluster from one outside source, and into how many of them at once.

The source has no part in the work: it is no rank, and it asks nothing. What it sends is counted per host
from the first byte on, as long as the transfer goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from skewscope.core.features import FeatureColumn, FeatureRows, FeatureSpec, Slice
from skewscope.features.graph import GraphRows
from skewscope.features.transport import PairRows

PAUSE_NS = 1_000_000_000
"""A transfer that stood still for as long has ended."""

MIN_BYTES = 1e6
"""Below this nothing is fetched: a page of metrics, an answer."""

MAX_TRANSFERS = 1 << 14


@dataclass
class _Transfer:
    begun_ns: int
    last_ns: int
    total_bytes: float = 0.0


class Inflows:
    """Per outside source: the transfers into the cluster that are under way."""

    SPEC = FeatureSpec(
        "inflow",
        "a source outside the work from which hosts of the cluster fetch",
        {
            "fetchers": FeatureColumn("1", "hosts that are fetching from it, a megabyte each at least"),
            "fetched_bytes": FeatureColumn("bytes", "median of what they have got so far"),
            "fetched_spread": FeatureColumn("1", "largest over smallest of those"),
            "fetched_total_bytes": FeatureColumn("bytes", "sum of those"),
        },
    )
    NEEDS: Sequence[str] = ("host", "pair")

    def __init__(self) -> None:
        self._transfers: dict[tuple[int, int], _Transfer] = {}

    def update(self, slice_: Slice, others: Mapping[str, FeatureRows]) -> FeatureRows:
        """Absorb one slice."""
        graph = cast(GraphRows, others["host"])
        pairs = cast(PairRows, others["pair"])
        inner = (graph.member >= 0) | graph.serves
        size = pairs.columns["bytes"]
        for (a, b), i in pairs.pair_of.items():
            if inner[a] or not inner[b] or graph.asks[a] or size[i] <= 0:
                continue
            if (a, b) not in self._transfers:
                if len(self._transfers) >= MAX_TRANSFERS:
                    continue
                self._transfers[a, b] = _Transfer(slice_.start_ns, slice_.end_ns)
            transfer = self._transfers[a, b]
            transfer.total_bytes += float(size[i])
            transfer.last_ns = slice_.end_ns
        self._transfers = {
            key: t for key, t in self._transfers.items() if slice_.end_ns - t.last_ns < PAUSE_NS
        }
        under_way: dict[int, list[_Transfer]] = {}
        for (a, _), transfer in self._transfers.items():
            if transfer.total_bytes >= MIN_BYTES and not inner[a] and not graph.asks[a]:
                under_way.setdefault(a, []).append(transfer)
        sources = sorted(under_way)
        got = [np.array([t.total_bytes for t in under_way[s]]) for s in sources]
        columns = {
            "fetchers": np.array([float(len(g)) for g in got]),
            "fetched_bytes": np.array([float(np.median(g)) for g in got]),
            "fetched_spread": np.array([float(g.max() / g.min()) for g in got]),
            "fetched_total_bytes": np.array([float(g.sum()) for g in got]),
        }
        # A storm begins with the second of those who take part in it.
        begun = [sorted(t.begun_ns for t in under_way[s])[:2][-1] for s in sources]
        onset = {"fetchers": np.array(begun, dtype=np.int64)}
        return FeatureRows("inflow", [slice_.directory.addresses[s] for s in sources], columns, onset)


FEATURE = Inflows
