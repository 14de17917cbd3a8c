"""Pace of an endpoint in its own units: chunk gaps, engine steps, queue, pauses, lag behind its rounds.

A *step* is one instant at which the endpoint sends: an engine with continuous batching sends one piece
per running stream and step. Queues are measured in steps, not seconds: an engine that slows down for
another reason (a slow rank, a lossy link) has slower steps, not a longer queue, and an engine that
stands still makes no steps at all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skewscope.core.features import FeatureColumn, Slice
from skewscope.core.tables import Array
from skewscope.features.egress_lag import LAG_COLUMNS, EgressLag
from skewscope.features.graph import GraphRows, grow
from skewscope.features.request_log import Activity, RequestLog
from skewscope.features.request_queue import QUEUE_COLUMNS, RequestQueue
from skewscope.features.rolling import Usual, grouped_quantile

LATEST = 16
"""Gaps that make "now": four streams give as many in four steps."""

SAME_STEP = 0.4
"""Share of the usual gap below which two sends belong to one step."""

TRAILER = 0.1
"""Share of the usual gap below which a piece is no token of its own: the final `[DONE]`, a usage block."""

PROMPT = 0.5
"""Share of the usual gap after which a head is no mere acceptance: it came with the first token."""

PAUSED = 1.7
"""A stream whose piece is this many usual gaps overdue is paused. 1.7 lets one late step pass."""

PACE_COLUMNS = {
    "chunk_gap_s": FeatureColumn("s", "median gap between pieces of a stream, gaps ended in the window"),
    "chunk_gap_p95_s": FeatureColumn("s", "95th percentile of the same"),
    "chunk_gap_ref_s": FeatureColumn("s", "the endpoint's usual gap, learned"),
    "chunk_gap_ratio": FeatureColumn("1", "median of the latest gaps over the usual gap"),
    "chunk_gap_spread": FeatureColumn("1", "(p90 - p10) over the median of the latest gaps"),
    "steps": FeatureColumn("1", "steps in the window"),
    "paused_share": FeatureColumn("1", "share of begun streams that are overdue at the window's end"),
    "common_pause_s": FeatureColumn("s", "longest time without a piece for any begun stream, ended or not"),
    "pause_ratio": FeatureColumn("1", "the same over the usual gap, 0 where no stream is begun"),
    "idle_s": FeatureColumn("s", "time since a request was last in hand, 0 while one is"),
    "gateway": FeatureColumn("1", "1 where the same address asks other endpoints on behalf of its clients"),
    **QUEUE_COLUMNS,
    **LAG_COLUMNS,
}


@dataclass
class Pieces:
    """The response pieces of one window, sorted by endpoint and time. All int64 (n,)."""

    endpoint: Array
    ts: Array
    gap: Array
    row: Array
    where: Array

    def take(self, rows: Array) -> Pieces:
        """Return some of them."""
        return Pieces(self.endpoint[rows], self.ts[rows], self.gap[rows], self.row[rows], self.where[rows])


@dataclass
class Steps:
    """Step instants of one window, sorted by endpoint and time, and the totals before it."""

    endpoint: Array
    ts: Array
    before: Array
    start_ns: int

    def at(self, endpoint: Array, ts: Array) -> Array:
        """Return how many steps each endpoint had made by each time of this window: float64 (n,)."""
        key = (self.endpoint << 40) + np.maximum(self.ts - self.start_ns, 0)
        low = np.searchsorted(key, endpoint << 40)
        high = np.searchsorted(key, (endpoint << 40) + np.maximum(ts - self.start_ns, 0), side="right")
        made: Array = self.before[endpoint] + high - low
        return made


class EndpointPace:
    """Keeps the references of every endpoint and compares each window with them."""

    def __init__(self) -> None:
        self.gap = Usual()
        self._total = np.zeros(0)
        self._sent = np.zeros(0, dtype=np.int64)
        self._piece = np.zeros(0, dtype=np.int64)
        self._busy = np.zeros(0, dtype=np.int64)
        self._gateway = np.zeros(0)
        self._queue = RequestQueue()
        self._lag = EgressLag()

    def update(
        self, slice_: Slice, graph: GraphRows, log: RequestLog, activity: Activity, wanted: Array,
        counts: dict[str, Array],
    ) -> tuple[dict[str, Array], dict[str, Array], dict[str, Array]]:  # fmt: skip
        """Return columns, onsets and frames, each of shape (endpoints,)."""
        size = len(counts["arrivals"])
        self._reserve(size)
        log.prompt_ns = grow(log.prompt_ns, size, np.inf)
        window_s = (slice_.end_ns - slice_.start_ns) / 1e9
        pieces = _pieces(log, activity, wanted)
        columns = self._gaps(pieces, size, window_s)
        log.prompt_ns[:size] = np.nan_to_num(PROMPT * 1e9 * columns["chunk_gap_ref_s"], nan=np.inf)
        steps = self._steps(pieces, slice_.start_ns)
        columns["steps"] = np.bincount(steps.endpoint, minlength=size)[:size].astype(np.float64)
        pause, onset, frames = self._pauses(pieces, log, wanted, slice_.end_ns, size)
        columns.update(pause)
        begun = counts["active_streams"] > 0
        usual = self.gap.value[:size]
        pause_ratio = pause["common_pause_s"] / usual
        columns["pause_ratio"] = np.where(begun | (pause["common_pause_s"] > 0), pause_ratio, 0.0)
        busy = counts["open_requests"] + counts["active_streams"] > 0
        self._busy[:size] = np.where(busy, slice_.end_ns, self._busy[:size])
        columns["idle_s"] = np.where(self._busy[:size] > 0, (slice_.end_ns - self._busy[:size]) / 1e9, np.nan)
        columns["gateway"] = self._gateways(log, activity, wanted, size)
        more, queue_onset, queue_frames = self._queue.update(slice_, log, activity, wanted, counts, steps)
        columns.update(more)
        onset.update(queue_onset)
        frames.update(queue_frames)
        self._total[:size] += columns["steps"]
        columns.update(self._lag.update(slice_, graph, log, pieces, usual, onset["common_pause_s"], columns))
        return columns, onset, frames

    def _reserve(self, size: int) -> None:
        self.gap.reserve(size)
        self._total, self._gateway = grow(self._total, size, 0.0), grow(self._gateway, size, 0.0)
        self._sent, self._piece, self._busy = (
            grow(a, size, 0) for a in (self._sent, self._piece, self._busy)
        )

    def _gateways(self, log: RequestLog, activity: Activity, wanted: Array, size: int) -> Array:
        rows = np.concatenate((activity.arrived, activity.chunk_row))
        asking = np.unique(log.pool["client"][rows[wanted[rows]]])
        for i, (address, _) in enumerate(log.endpoints[:size]):
            if address in asking:
                self._gateway[i] = 1.0
        return self._gateway[:size].copy()

    def _gaps(self, pieces: Pieces, size: int, window_s: float) -> dict[str, Array]:
        gap_s = pieces.gap / 1e9
        usual = self.gap.value[pieces.endpoint]
        real = (pieces.gap > 0) & ~(gap_s < TRAILER * usual)
        rows, values = pieces.endpoint[real], gap_s[real]
        self.gap.learn(rows, values, window_s)
        every = np.arange(size)
        low, mid, high = (self.gap.recent(every, q, LATEST) for q in (0.1, 0.5, 0.9))
        usual = np.where(self.gap.known(every), self.gap.value[:size], np.nan)
        return {
            "chunk_gap_s": grouped_quantile(rows, values, 0.5, size),
            "chunk_gap_p95_s": grouped_quantile(rows, values, 0.95, size),
            "chunk_gap_ref_s": usual,
            "chunk_gap_ratio": mid / usual,
            "chunk_gap_spread": (high - low) / mid,
        }

    def _steps(self, pieces: Pieces, start_ns: int) -> Steps:
        """Return the instants at which an endpoint began to send after a silence."""
        apart = SAME_STEP * np.nan_to_num(self.gap.value[pieces.endpoint]) * 1e9
        since, last = _since(pieces.endpoint, pieces.ts, self._sent)
        self._sent = last
        begins = since > apart
        return Steps(pieces.endpoint[begins], pieces.ts[begins], self._total.copy(), start_ns)

    def _pauses(
        self, pieces: Pieces, log: RequestLog, wanted: Array, end_ns: int, size: int
    ) -> tuple[dict[str, Array], dict[str, Array], dict[str, Array]]:
        """Find the longest silence towards begun streams; a first piece does not end it."""
        later = pieces.take(np.flatnonzero(pieces.gap > 0))
        since, self._piece = _since(later.endpoint, later.ts, self._piece)
        pause = np.minimum(since, later.gap)
        longest, start = np.zeros(size), np.zeros(size, dtype=np.int64)
        where = np.full((size, 2), -1, dtype=np.int64)
        order = np.argsort(pause, kind="stable")  # the longest of each endpoint is written last
        at = later.endpoint[order]
        longest[at], start[at], where[at] = pause[order], (later.ts - pause)[order], later.where[order]
        pool = log.pool
        begun = np.flatnonzero(pool["open"] & wanted & (pool["first_ns"] > 0))
        heard = np.zeros(size, dtype=np.int64)
        np.maximum.at(heard, pool["endpoint"][begun], pool["last_ns"][begun])
        ongoing = np.where(heard > 0, end_ns - heard, 0)
        worse = ongoing > longest
        longest, start = np.where(worse, ongoing, longest), np.where(worse, heard, start)
        where[worse] = -1
        overdue = end_ns - pool["last_ns"][begun] > PAUSED * 1e9 * self.gap.value[pool["endpoint"][begun]]
        paused = np.bincount(pool["endpoint"][begun], overdue, minlength=size)[:size]
        total = np.bincount(pool["endpoint"][begun], minlength=size)[:size]
        columns = {"common_pause_s": longest / 1e9, "paused_share": paused / np.maximum(total, 1)}
        return columns, {"common_pause_s": start}, {"common_pause_s": where}


def _pieces(log: RequestLog, activity: Activity, wanted: Array) -> Pieces:
    kept = np.flatnonzero(wanted[activity.chunk_row])
    endpoint = log.pool["endpoint"][activity.chunk_row[kept]]
    kept = kept[np.argsort(endpoint, kind="stable")]  # times are in order already
    row = activity.chunk_row[kept]
    return Pieces(
        log.pool["endpoint"][row],
        activity.chunk_ns[kept],
        activity.chunk_gap_ns[kept],
        row,
        activity.chunk_tap[kept],
    )


def _since(rows: Array, ts: Array, last: Array) -> tuple[Array, Array]:
    """Return the time since the row's event before, and the updated time of each row's last event.

    rows, ts int64 (n,), sorted by row and time; last int64 (rows,), 0 = never.
    """
    if not len(rows):
        return np.zeros(0, dtype=np.int64), last
    head = np.concatenate(([True], rows[1:] != rows[:-1]))
    before = np.where(head, last[rows], np.concatenate((ts[:1], ts[:-1])))
    updated = last.copy()
    updated[rows] = ts  # the last write of each row wins, and it is the latest
    return np.where(before > 0, ts - before, 0), updated
