"""Transit of RoCE packets from the sender's tap to the receiver's, by packet sequence number."""

from __future__ import annotations

import numpy as np

from skewscope.core.tables import Array, Table
from skewscope.features.graph import GraphRows
from skewscope.features.roce_fate import REQUESTS

CNP = 0x81
CONGESTED = 3
"""ECN bits of a packet that met a queue."""


def crossings(roce: Table | None, graph: GraphRows) -> Array:
    """Return int64 (n, 5): lane, transit (ns), time at the receiver's tap, frame | tap << 48 there, size.

    Only packets that both taps of a connection saw once in this window tell: a number sent again says nothing
    of which copy came. roce: rows in order of time, None where no source has it.
    """
    none = np.zeros((0, 5), dtype=np.int64)
    if roce is None or not len(roce):
        return none
    op = roce["opcode"].astype(np.int64)
    asked = (op < 0x20) & ((np.int64(1) << (op & 0x1F)) & REQUESTS > 0)
    p = roce.take(asked & (roce["fault"] == 0) & (roce["flow"] > 0))
    flow, way, tap = p["flow"].astype(np.int64), p["way"].astype(np.int64), p["tap"]
    near, far = graph.vantage[flow, way], graph.vantage[flow, 1 - way]
    lane = 2 * flow + way
    key = lane << 24 | p["psn"].astype(np.int64)
    apart = near != far
    sent, took = np.flatnonzero(apart & (near == tap)), np.flatnonzero(apart & (far == tap))
    a, at_a, count_a = np.unique(key[sent], return_index=True, return_counts=True)
    b, at_b, count_b = np.unique(key[took], return_index=True, return_counts=True)
    _, in_a, in_b = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    once = (count_a[in_a] == 1) & (count_b[in_b] == 1)
    i, j = sent[at_a[in_a[once]]], took[at_b[in_b[once]]]
    ts = p["ts_ns"].astype(np.int64)
    place = p["frame"].astype(np.int64) | tap.astype(np.int64) << 48
    return np.stack([lane[j], ts[j] - ts[i], ts[j], place[j], p["payload_bytes"].astype(np.int64)[j]], axis=1)


def congested(roce: Table | None, graph: GraphRows) -> tuple[Array, Array]:
    """Return the lanes of packets marked on their way, and of data whose receiver notified of congestion.

    Both int64, one entry per packet; the marked ones as the receiver's tap shows them, notifications at
    the tap of whoever sent them (annex A17 of the InfiniBand Architecture Specification, volume 1).
    """
    if roce is None or not len(roce):
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    p = roce.take((roce["fault"] == 0) & (roce["flow"] > 0))
    flow, way, tap = p["flow"].astype(np.int64), p["way"].astype(np.int64), p["tap"]
    lane, told = 2 * flow + way, p["opcode"] == CNP
    marked = ~told & (p["ecn"] == CONGESTED) & (graph.vantage[flow, 1 - way] == tap)
    told &= graph.vantage[flow, way] == tap
    return lane[marked], lane[told] ^ 1
