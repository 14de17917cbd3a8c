"""Heartbeats: small datagrams or segments of one flow at an even spacing, and how late the next one is.

What is a heartbeat is learned from its rhythm, not from a port: few and small packets, at gaps that are
almost the same. Flows of HTTP, TLS, collectives and bulk data are none. A gap counts once the next beat has
come: a flow that merely ends is not late.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from statistics import median
from typing import cast

import numpy as np

from skewscope.core.features import FeatureColumn, FeatureRows, FeatureSpec, Slice
from skewscope.core.tables import Array
from skewscope.features.graph import GraphRows, grow

MAX_BYTES = 1024
"""Largest payload of a heartbeat: a node's name, a number, a few gauges."""

MAX_PER_WINDOW = 3
"""More packets than this in a tenth of a second are a stream."""

MIN_BEATS, MAX_BEATS = 8, 32
"""Gaps after which a rhythm is known, and the latest ones that it is the median of."""

EVEN = 0.25
"""Half of the gaps must lie within this share of their median."""

LATE = 2.2
"""A gap of as many usual ones is late: one lost beat makes 2."""

RECENT_NS = 5_000_000_000
"""How long a late beat counts."""

MIN_PERIOD_S, MAX_PERIOD_S = 0.1, 60.0
"""Tokens of a stream come faster than that."""

MAX_FLOWS = 4096


@dataclass(slots=True)
class _Beat:
    """One flow in one direction."""

    last_ns: int = 0
    gaps_s: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_BEATS))
    late: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=16))
    """When each late gap began and ended (ns)."""
    period_s: float = float("nan")
    """The usual gap, NaN where the gaps are no rhythm."""

    def take(self, ts: int) -> None:
        """Take the time of the next message."""
        if self.last_ns and ts > self.last_ns:
            gap = (ts - self.last_ns) / 1e9
            if gap > LATE * self.period_s:
                self.late.append((self.last_ns, ts))
            else:
                self.gaps_s.append(gap)
                self.period_s = _period_s(self.gaps_s)
        self.last_ns = max(ts, self.last_ns)

    def over(self, now_ns: int) -> bool:
        """Say whether it has ended, for all that is known of its rhythm."""
        patience = 10e9 * self.period_s if isfinite(self.period_s) else 0.0
        return now_ns - self.last_ns > max(patience, RECENT_NS)


def _period_s(gaps_s: Sequence[float]) -> float:
    """Return the median of gaps that are a rhythm (s), else NaN."""
    if len(gaps_s) < MIN_BEATS:
        return float("nan")
    usual = median(gaps_s)
    even = median([abs(gap - usual) for gap in gaps_s]) <= EVEN * usual
    return usual if even and MIN_PERIOD_S <= usual <= MAX_PERIOD_S else float("nan")


class Heartbeats:
    """Per sending host: the worst of its heartbeats."""

    SPEC = FeatureSpec(
        "heartbeat",
        "regular small messages of a host",
        {
            "beat_s": FeatureColumn("s", "usual gap between heartbeats"),
            "gap_ratio": FeatureColumn("1", "longest late gap of the last five seconds over the usual one"),
            "late_beats": FeatureColumn("1", "late gaps of the last five seconds"),
            "host_packets": FeatureColumn("1", "packets that the host sent in the window"),
        },
    )
    NEEDS: Sequence[str] = ("host",)

    def __init__(self) -> None:
        self._beats: dict[int, _Beat] = {}
        """By lane: twice the flow, plus the way."""
        self._stream = np.zeros(0, dtype=np.bool_)
        """Lanes that are no heartbeat."""

    def update(self, slice_: Slice, others: Mapping[str, FeatureRows]) -> FeatureRows:
        """Absorb one slice."""
        graph = cast(GraphRows, others["host"])
        self._learn(slice_, graph)
        best: dict[int, tuple[float, float, int, int]] = {}
        for lane, beat in list(self._beats.items()):
            flow = lane // 2
            if beat.over(slice_.end_ns) or graph.server[flow] >= 0 or graph.collective[flow]:
                del self._beats[lane]
            elif isfinite(beat.period_s):
                host = int(graph.ends[flow, lane % 2])
                ratio, count, since = _lateness(beat, slice_.end_ns)
                if host not in best or ratio > best[host][1]:
                    best[host] = (beat.period_s, ratio, count, since)
        hosts = sorted(best)
        sent = dict(zip(graph.keys, graph.columns["tx_packets"].tolist(), strict=True))
        names = [slice_.directory.addresses[h] for h in hosts]
        columns = {
            "beat_s": np.array([best[h][0] for h in hosts]),
            "gap_ratio": np.array([best[h][1] for h in hosts]),
            "late_beats": np.array([float(best[h][2]) for h in hosts]),
            "host_packets": np.array([sent.get(name, 0.0) for name in names]),
        }
        onset = {"gap_ratio": np.array([best[h][3] for h in hosts], dtype=np.int64)}
        return FeatureRows("heartbeat", names, columns, onset)

    def _learn(self, slice_: Slice, graph: GraphRows) -> None:
        packets = slice_.tables["packets"]
        self._stream = grow(self._stream, 2 * len(slice_.directory.flows), 0)
        for end in (0, 1):
            self._drop(2 * slice_.tables["records"]["flow"].astype(np.int64) + end)
        flow, way = packets["flow"].astype(np.int64), packets["way"].astype(np.int64)
        lane = 2 * flow + way
        plain = (packets["payload_bytes"] > 0) & (flow > 0) & ~self._stream[lane]
        plain &= (graph.vantage[flow, way] == packets["tap"]) & (graph.server[flow] < 0)
        plain &= ~graph.collective[flow] & ~graph.opaque[flow]
        rows = np.flatnonzero(plain)
        count = np.bincount(lane[rows], minlength=len(self._stream))
        large = lane[rows[packets["payload_bytes"][rows] > MAX_BYTES]]
        self._drop(np.concatenate([np.flatnonzero(count > MAX_PER_WINDOW), large]))
        rows = rows[~self._stream[lane[rows]]]
        for at, ts in zip(lane[rows].tolist(), packets["ts_ns"][rows].tolist(), strict=True):
            if at not in self._beats:
                if len(self._beats) >= MAX_FLOWS:
                    continue
                self._beats[at] = _Beat()
            self._beats[at].take(ts)

    def _drop(self, lanes: Array) -> None:
        """Follow these lanes no more."""
        fresh = np.unique(lanes[~self._stream[lanes]])
        self._stream[fresh] = True
        for lane in fresh.tolist():
            self._beats.pop(lane, None)


def _lateness(beat: _Beat, end_ns: int) -> tuple[float, int, int]:
    """Return the longest late gap over the usual one, how many there were, and when the first began."""
    gaps = [(a, b) for a, b in beat.late if end_ns - b < RECENT_NS]
    if not gaps:
        return 1.0, 0, 0
    longest = max(b - a for a, b in gaps)
    # A beat was due a period after the one before: from then on it was late.
    return longest / 1e9 / beat.period_s, len(gaps), min(a for a, _ in gaps) + int(beat.period_s * 1e9)


FEATURE = Heartbeats
