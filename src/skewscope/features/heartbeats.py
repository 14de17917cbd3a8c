"""Heartbeats: small datagrams or segments of one flow at an even spacing, and how late the next one is.

What is a heartbeat is learned from its rhythm, not from a port: few and small packets, at gaps that are
almost the same. Flows of HTTP, TLS, collectives and bulk data are none. A gap counts once the next beat has
come: a flow that merely ends is not late.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from skewscope.core.features import FeatureColumn, FeatureRows, FeatureSpec, Slice
from skewscope.features.graph import GraphRows

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


@dataclass
class _Beat:
    """One flow in one direction."""

    last_ns: int = 0
    gaps_s: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_BEATS))
    late: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=16))
    """When each late gap began and ended (ns)."""
    stream: bool = False

    def period_s(self) -> float:
        """Return the usual gap, NaN where the gaps are no rhythm."""
        if len(self.gaps_s) < MIN_BEATS:
            return float("nan")
        gaps = np.array(self.gaps_s)
        usual = float(np.median(gaps))
        even = float(np.median(np.abs(gaps - usual))) <= EVEN * usual
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
        self._beats: dict[tuple[int, int], _Beat] = {}

    def update(self, slice_: Slice, others: Mapping[str, FeatureRows]) -> FeatureRows:
        """Absorb one slice."""
        graph = cast(GraphRows, others["host"])
        self._learn(slice_, graph)
        best: dict[int, tuple[float, float, int, int]] = {}
        for (flow, way), beat in self._beats.items():
            plain = not beat.stream and graph.server[flow] < 0 and not graph.collective[flow]
            period = beat.period_s() if plain else float("nan")
            if not np.isfinite(period):
                continue
            host = int(graph.ends[flow, way])
            ratio, count, since = _lateness(beat, period, slice_.end_ns)
            if host not in best or ratio > best[host][1]:
                best[host] = (period, ratio, count, since)
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
        for secret in np.unique(slice_.tables["records"]["flow"]).tolist():
            for end in (0, 1):
                self._beats.setdefault((secret, end), _Beat()).stream = True
        flow, way = packets["flow"].astype(np.int64), packets["way"].astype(np.int64)
        plain = (packets["payload_bytes"] > 0) & (flow > 0) & (graph.vantage[flow, way] == packets["tap"])
        plain &= (graph.server[flow] < 0) & ~graph.collective[flow] & ~graph.opaque[flow]
        rows = np.flatnonzero(plain)
        lane_of = 2 * flow[rows] + way[rows]
        lanes, count = np.unique(lane_of, return_counts=True)
        order = np.argsort(lane_of, kind="stable")
        at = np.concatenate(([0], np.cumsum(count)))
        for i, lane in enumerate(lanes.tolist()):
            key = (lane // 2, lane % 2)
            beat = self._beats.get(key)
            if beat is None:
                if len(self._beats) >= MAX_FLOWS:
                    continue
                beat = self._beats[key] = _Beat()
            mine = rows[order[at[i] : at[i + 1]]]
            if count[i] > MAX_PER_WINDOW or packets["payload_bytes"][mine].max() > MAX_BYTES:
                beat.stream = True
            if not beat.stream:
                for ts in packets["ts_ns"][mine].tolist():
                    _take(beat, ts)


def _take(beat: _Beat, ts: int) -> None:
    if beat.last_ns and ts > beat.last_ns:
        gap = (ts - beat.last_ns) / 1e9
        period = beat.period_s()
        if np.isfinite(period) and gap > LATE * period:
            beat.late.append((beat.last_ns, ts))
        else:
            beat.gaps_s.append(gap)
    beat.last_ns = max(ts, beat.last_ns)


def _lateness(beat: _Beat, period_s: float, end_ns: int) -> tuple[float, int, int]:
    """Return the longest late gap over the usual one, how many there were, and when the first began."""
    gaps = [(a, b) for a, b in beat.late if end_ns - b < RECENT_NS]
    if not gaps:
        return 1.0, 0, 0
    longest = max(b - a for a, b in gaps)
    # A beat was due a period after the one before: from then on it was late.
    return longest / 1e9 / period_s, len(gaps), min(a for a, _ in gaps) + int(period_s * 1e9)


FEATURE = Heartbeats
