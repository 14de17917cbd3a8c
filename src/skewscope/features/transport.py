"""Transport between two hosts: round trips, transit, loss, reordering, windows, bytes by kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from skewscope.core.features import FeatureColumn, FeatureRows, FeatureSpec, Slice
from skewscope.core.tables import Array
from skewscope.features import tcp_fate as fate
from skewscope.features import tcp_kernel as k
from skewscope.features.graph import GraphRows, grow
from skewscope.features.roce_fate import E_NOT_READY, RoceFate
from skewscope.features.roce_transit import congested, crossings
from skewscope.features.tcp_lanes import Lanes


@dataclass
class PairRows(FeatureRows):
    """Rows per directed host pair, and the raw events of the window for those who locate loss."""

    events: Array = field(default_factory=lambda: np.zeros((0, 6), dtype=np.int64))
    """int64 (n, 6): kind (tcp_fate.E_*), lane, ts_ns, length, frame | tap << 48, 0."""
    passed: Array = field(default_factory=lambda: np.zeros((0, 3), dtype=np.int64))
    """int64 (n, 3): lane, ts_ns, payload bytes of copies known to have crossed."""
    pair_of: dict[tuple[int, int], int] = field(default_factory=dict)
    """(source, destination) address ids -> row."""


class Transport:
    """Per directed pair a->b: what happened to the data that a sent to b."""

    SPEC = FeatureSpec(
        "pair",
        "data from a to b, judged at a's and b's taps",
        {
            "bytes": FeatureColumn("bytes", "TCP and UDP payload sent"),
            "packets": FeatureColumn("1", "packets sent"),
            "segments": FeatureColumn("1", "TCP data segments and RoCE request packets sent"),
            "largest_bytes": FeatureColumn("bytes", "largest TCP payload sent"),
            "resent": FeatureColumn("1", "segments sent again, for whatever reason"),
            "lost": FeatureColumn("1", "copies that were lost"),
            "lost_smallest_bytes": FeatureColumn("bytes", "smallest lost copy"),
            "lost_largest_bytes": FeatureColumn("bytes", "largest lost copy"),
            "needless": FeatureColumn(
                "1", "copies sent again after the first had arrived (tail-loss probes)"
            ),
            "reordered": FeatureColumn("1", "segments that arrived behind later ones"),
            "holes": FeatureColumn("1", "gaps that opened at the receiver's tap"),
            "dupacks": FeatureColumn("1", "duplicate acknowledgements"),
            "rtt_s": FeatureColumn("s", "median time from data to its ACK at a's tap, delayed ones apart"),
            "rtt_max_s": FeatureColumn("s", "largest such time"),
            "rtt_samples": FeatureColumn("1", "round trips behind the median"),
            "rtt_min_s": FeatureColumn("s", "least such time, possibly delayed ones included"),
            "transit_s": FeatureColumn("s", "median time from a's tap to b's tap (clock offset included)"),
            "transit_p90_s": FeatureColumn("s", "90th percentile of the same"),
            "transit_min_s": FeatureColumn("s", "least of the same"),
            "zero_windows": FeatureColumn("1", "packets in which b said that it cannot take more"),
            "zero_window_s": FeatureColumn("s", "time in the window during which b could not take more"),
            "syns": FeatureColumn("1", "connection requests by a"),
            "fins": FeatureColumn("1", "connections that a ended"),
            "rsts": FeatureColumn("1", "connections that a reset"),
            "ce_marks": FeatureColumn("1", "packets marked congestion experienced"),
            "notified": FeatureColumn("1", "RoCE congestion notifications about its packets"),
            "collective_bytes": FeatureColumn("bytes", "payload on flows that carry collectives"),
            "inner": FeatureColumn("1", "1 where both are hosts of the cluster, 0 where one is a client"),
            "not_ready": FeatureColumn("1", "RoCE packets that b refused for want of a buffer (RNR NAK)"),
            "http_bytes": FeatureColumn("bytes", "payload on flows that carry HTTP"),
        },
    )
    NEEDS: Sequence[str] = ("host",)

    def __init__(self) -> None:
        self._lanes = Lanes()
        self._roce = RoceFate()
        self._pending = np.zeros((1024, 9), dtype=np.int64)
        self._pending_count = 0
        self._tap_last = np.zeros(0, dtype=np.int64)
        self._zero_lanes = np.zeros(0, dtype=np.int64)

    def update(self, slice_: Slice, others: Mapping[str, FeatureRows]) -> PairRows:
        """Absorb one slice."""
        graph = cast(GraphRows, others["host"])
        packets = slice_.tables["packets"]
        self._tap_last = grow(self._tap_last, len(slice_.directory.taps), 0)
        np.maximum.at(self._tap_last, packets["tap"], packets["ts_ns"])
        cols, touched = self._lanes.gather(packets, len(slice_.directory.flows), graph.vantage)
        rtt, transit, events = self._scan(slice_, cols, graph)
        sent, more, crossed = self._roce.update(slice_.tables.get("roce"), graph)
        events = np.concatenate([events, more])
        roce = slice_.tables.get("roce")
        crossed_ns = np.concatenate([transit, crossings(roce, graph)])
        rows = self._rows(
            slice_, touched, graph, rtt, transit, crossed_ns, events, sent, congested(roce, graph)
        )
        rows.passed = np.concatenate([rows.passed, crossed])
        return rows

    def _scan(self, slice_: Slice, cols: Array, graph: GraphRows) -> tuple[Array, Array, Array]:
        n = len(cols)
        rtt, transit = (np.empty((n, 5), dtype=np.int64) for _ in range(2))
        self._pending = grow(self._pending, self._pending_count + n, 0)
        # A packet makes at most three events, and its fate one more.
        events = np.zeros((4 * n + self._pending_count, 6), dtype=np.int64)
        counts = np.array([0, 0, 0, self._pending_count], dtype=np.int64)
        k.scan(
            cols,
            graph.vantage,
            self._lanes.state,
            self._lanes.ring,
            self._lanes.acc,
            rtt,
            transit,
            events,
            self._pending,
            counts,
        )
        vantage = graph.vantage
        waiting = int(counts[3])
        lane = self._pending[:waiting, 0]
        far = vantage[lane // 2, 1 - lane % 2]
        separate = vantage[lane // 2, lane % 2] != far
        now = slice_.end_ns if not slice_.last else slice_.end_ns + fate.GIVE_UP_NS
        self._pending_count = fate.decide(
            self._pending, waiting, now, separate, self._tap_last[far], events, counts
        )
        return rtt[: counts[0]], transit[: counts[1]], events[: counts[2]]

    def _rows(
        self, slice_: Slice, touched: Array, graph: GraphRows, rtt: Array, transit: Array, crossed_ns: Array,
        events: Array, sent: Array, congestion: tuple[Array, Array],
    ) -> PairRows:  # fmt: skip
        lanes = np.unique(np.concatenate([touched, events[:, 1], self._zero_lanes, *congestion]))
        ends = graph.ends[lanes // 2]
        every = np.arange(len(lanes))
        source, target = ends[every, lanes % 2], ends[every, 1 - lanes % 2]
        pairs, row = np.unique((source << 32) + target, return_inverse=True)
        index = _Rows(lanes, row, len(pairs))
        columns = self._sums(index, graph)
        requests = index.of(index.known(sent[:, None])[:, 0])
        columns["segments"] += np.bincount(requests, minlength=index.count)
        marked, told = (index.of(index.known(lanes_[:, None])[:, 0]) for lanes_ in congestion)
        columns["ce_marks"] += np.bincount(marked, minlength=index.count)
        columns["notified"] = np.bincount(told, minlength=index.count).astype(np.float64)
        onset: dict[str, Array] = {}
        frames: dict[str, Array] = {}
        trips = index.known(rtt)
        prompt = trips[:, 4] & 1 == 0
        index.median(columns, onset, frames, "rtt", trips[prompt])
        index.median(columns, onset, frames, "transit", index.known(crossed_ns))
        columns["rtt_min_s"] = index.least(trips)
        samples = np.bincount(index.of(trips[prompt, 0]), minlength=index.count)
        columns["rtt_samples"] = samples.astype(np.float64)
        index.events(columns, onset, frames, events)
        columns["zero_window_s"] = self._zero_time(slice_, index)
        client = graph.is_client()
        a, b = pairs >> 32, pairs & 0xFFFFFFFF
        columns["inner"] = (~client[a] & ~client[b]).astype(np.float64)
        rows = self._lanes.rows(lanes)
        self._lanes.acc[rows[rows >= 0]] = 0
        names = slice_.directory.addresses
        pair_of = {ends: i for i, ends in enumerate(zip(a.tolist(), b.tolist(), strict=True))}
        keys = [f"{names[a]}->{names[b]}" for a, b in pair_of]
        passed = np.concatenate([transit[:, [0, 2, 4]], rtt[:, [0, 2, 4]] >> [0, 0, 1]])
        return PairRows("pair", keys, columns, onset, frames, events=events, passed=passed, pair_of=pair_of)

    def _sums(self, index: _Rows, graph: GraphRows) -> dict[str, Array]:
        rows = self._lanes.rows(index.lanes)
        acc = np.where((rows >= 0)[:, None], self._lanes.acc[rows], 0)
        named = {
            "packets": k.A_PACKETS, "bytes": k.A_BYTES, "segments": k.A_SEGMENTS, "resent": k.A_RESENT,
            "reordered": k.A_REORDERED, "holes": k.A_HOLES, "dupacks": k.A_DUPACKS, "zero_windows": k.A_ZERO,
            "syns": k.A_SYN, "fins": k.A_FIN, "rsts": k.A_RST, "ce_marks": k.A_CE,
        }  # fmt: skip
        columns = {name: index.sum(acc[:, at]) for name, at in named.items()}
        largest = np.zeros(index.count)
        np.maximum.at(largest, index.row, acc[:, k.A_LARGEST])
        columns["largest_bytes"] = largest
        flows = index.lanes // 2
        columns["collective_bytes"] = index.sum(acc[:, k.A_BYTES] * graph.collective[flows])
        columns["http_bytes"] = index.sum(acc[:, k.A_BYTES] * (graph.server[flows] >= 0))
        return columns

    def _zero_time(self, slice_: Slice, index: _Rows) -> Array:
        rows = self._lanes.rows(index.lanes)
        since = np.where(rows >= 0, self._lanes.state[rows, k.L_ZERO_SINCE], 0)
        closed = since > 0
        self._zero_lanes = index.lanes[closed]
        time = np.where(closed, slice_.end_ns - np.maximum(since, slice_.start_ns), 0) / 1e9
        longest = np.zeros(index.count)
        np.maximum.at(longest, index.row, time)
        return longest


class _Rows:
    """Lanes of a window folded to host pairs."""

    def __init__(self, lanes: Array, row: Array, count: int) -> None:
        self.lanes, self.row, self.count = lanes, row, count

    def sum(self, values: Array) -> Array:
        """Sum a per-lane column per pair; float64 (pairs,)."""
        return np.bincount(self.row, values, minlength=self.count).astype(np.float64)

    def of(self, lanes: Array) -> Array:
        """Return the pair row of each lane."""
        return self.row[np.searchsorted(self.lanes, lanes)]

    def known(self, rows: Array) -> Array:
        """Return the rows (lane, ...) whose lane is among the window's."""
        if not len(self.lanes):
            return rows[:0]
        at = np.minimum(np.searchsorted(self.lanes, rows[:, 0]), len(self.lanes) - 1)
        hit = self.lanes[at] == rows[:, 0]
        return rows if hit.all() else rows[hit]

    def least(self, rows: Array) -> Array:
        """Return the least sample (s) per pair of rows (lane, ns, ...), NaN where there is none."""
        low = np.full(self.count, np.inf)
        np.minimum.at(low, self.of(rows[:, 0]), rows[:, 1] / 1e9)
        return np.where(np.isfinite(low), low, np.nan)

    def median(
        self,
        columns: dict[str, Array],
        onset: dict[str, Array],
        frames: dict[str, Array],
        name: str,
        rows: Array,
    ) -> None:
        """Add median, extreme and spread of samples (lane, ns, ts, frame, _) under `name`."""
        where, value = self.of(rows[:, 0]), rows[:, 1] / 1e9
        order = np.lexsort((value, where))
        ranked = value[order]
        cuts = np.searchsorted(where[order], np.arange(self.count + 1))
        columns[f"{name}_s"] = _quantile(ranked, cuts, 0.5)
        low, high = _quantile(ranked, cuts, 0.0), _quantile(ranked, cuts, 1.0)
        at = np.full((self.count, 2), -1, dtype=np.int64)
        when = np.zeros(self.count, dtype=np.int64)
        top = np.flatnonzero(value == high[where])[::-1]  # the first one is written last
        at[where[top], 0], at[where[top], 1] = rows[top, 3] >> 48, rows[top, 3] & 0xFFFFFFFFFFFF
        when[where[top]] = rows[top, 2]
        frames[f"{name}_s"], onset[f"{name}_s"] = at, when
        if name == "rtt":
            columns["rtt_max_s"] = high
        else:
            columns["transit_p90_s"], columns["transit_min_s"] = _quantile(ranked, cuts, 0.9), low

    def events(
        self, columns: dict[str, Array], onset: dict[str, Array], frames: dict[str, Array], events: Array
    ) -> None:
        """Add loss counts, the sizes of lost copies and the first lost copy's time and frame."""
        where = self.of(events[:, 1])
        kinds = {
            "lost": fate.E_LOST,
            "needless": fate.E_NEEDLESS,
            "zero_windows": fate.E_CLOSED,
            "not_ready": E_NOT_READY,
        }
        for name, kind in kinds.items():
            hit = events[:, 0] == kind
            if name not in columns:
                columns[name] = np.bincount(where[hit], minlength=self.count).astype(np.float64)
            first = np.zeros(self.count, dtype=np.int64)
            at = np.full((self.count, 2), -1, dtype=np.int64)
            rows = np.flatnonzero(hit)[::-1]  # the first one is written last
            first[where[rows]] = events[rows, 2]
            at[where[rows], 0], at[where[rows], 1] = events[rows, 4] >> 48, events[rows, 4] & 0xFFFFFFFFFFFF
            onset[name], frames[name] = first, at
        lost = events[:, 0] == fate.E_LOST
        small, large = np.full(self.count, np.inf), np.zeros(self.count)
        np.minimum.at(small, where[lost], events[lost, 3])
        np.maximum.at(large, where[lost], events[lost, 3])
        columns["lost_smallest_bytes"] = np.where(np.isfinite(small), small, np.nan)
        columns["lost_largest_bytes"] = np.where(large > 0, large, np.nan)


def _quantile(ranked: Array, cuts: Array, q: float) -> Array:
    """Return the q-quantile, interpolated, of each run [cuts[i], cuts[i + 1]) of ascending values.

    float64 (runs,), NaN where a run is empty.
    """
    count = np.diff(cuts)
    out = np.full(len(count), np.nan)
    some = np.flatnonzero(count)
    place = q * (count[some] - 1)
    under = np.floor(place).astype(np.int64)
    low = ranked[cuts[some] + under]
    high = ranked[cuts[some] + np.minimum(under + 1, count[some] - 1)]
    out[some] = low + (high - low) * (place - under)
    return out


FEATURE = Transport
