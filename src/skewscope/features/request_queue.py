"""The queue in front of an endpoint, measured in the endpoint's own steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from skewscope.core.features import FeatureColumn, Slice
from skewscope.core.tables import Array
from skewscope.features.graph import grow
from skewscope.features.request_log import Activity, RequestLog
from skewscope.features.rolling import Ring, Usual, grouped_quantile

if TYPE_CHECKING:
    from skewscope.features.endpoint_pace import Steps

PEAK_HALF_S = 300.0
"""Half-life of the learned peak of running streams: a capacity once seen is believed for minutes."""

FULL_SHARE = 0.85
"""Share of the peak at which an engine counts as full: one of eight slots may be between two streams."""

FREE_SHARE = 0.75
"""Share of the peak up to which slots count as free: a quarter of them empty."""

DEEP_COUNT, DEEP_SHARE, DEEP_KEPT = 3, 0.5, 0.75
"""A queue is deep from this many requests and this share of the running ones on. Below, it is the
ordinary wait for the next step; closed-loop clients that come back together stay below or drain. It
stays deep down to three quarters of that."""

QUEUE_COLUMNS = {
    "ttft_s": FeatureColumn("s", "median time from a request's last byte to its first response byte"),
    "ttft_ref_s": FeatureColumn("s", "the same where no other request waited, learned"),
    "oldest_open_s": FeatureColumn("s", "age of the oldest request without an answer, 0 = none"),
    "oldest_open_steps": FeatureColumn("1", "steps made since that request came in"),
    "ttft_ref_steps": FeatureColumn("1", "usual steps to the first byte without a queue, 0 = unknown"),
    "stall_steps": FeatureColumn("1", "steps since a response last began while requests wait"),
    "full_steps": FeatureColumn("1", "steps since which requests wait and no slot beyond the peak was taken"),
    "empty_steps": FeatureColumn("1", "steps since which requests wait, slots are free, no response began"),
    "freed_slots": FeatureColumn("1", "streams that ended since a response last began, while requests wait"),
    "active_peak": FeatureColumn("1", "most streams seen running at once, slowly forgotten"),
    "active_share": FeatureColumn("1", "running streams over that peak"),
    "backlog_ratio": FeatureColumn("1", "requests without an answer over running streams"),
}  # fmt: skip


class RequestQueue:
    """Ages of waiting requests in steps, the learned capacity, and when the queue became deep."""

    def __init__(self) -> None:
        self._alone = Ring()
        self._alone_s = Usual()
        self._peak = np.zeros(0)
        self._full_from = np.zeros(0)
        self._empty_from = np.zeros(0)
        self._admitted_at = np.zeros(0)
        self._freed = np.zeros(0)
        self._deep_ns = np.zeros(0, dtype=np.int64)
        self._admitted_ns = np.zeros(0, dtype=np.int64)
        self._waiting = np.zeros(0)

    def update(
        self,
        slice_: Slice,
        log: RequestLog,
        activity: Activity,
        wanted: Array,
        counts: dict[str, Array],
        steps: Steps,
    ) -> tuple[dict[str, Array], dict[str, Array], dict[str, Array]]:
        """Return columns, onsets and frames, each of shape (endpoints,)."""
        size = len(counts["arrivals"])
        self._reserve(size)
        now = steps.before[:size] + np.bincount(steps.endpoint, minlength=size)[:size]
        self._arrive(log, activity, wanted, steps, counts["active_streams"])
        columns = self._answered(log, activity, wanted, steps, size, (slice_.end_ns - slice_.start_ns) / 1e9)
        oldest, oldest_s, frames = _oldest(log, wanted, slice_.end_ns, now, size)
        waits = counts["open_requests"] > 0
        columns["oldest_open_s"] = oldest_s
        columns["oldest_open_steps"] = np.where(waits, now - oldest, 0.0)
        since = np.maximum(self._admitted_at[:size], oldest)
        columns["stall_steps"] = np.where(waits, now - since, 0.0)
        columns["freed_slots"] = self._free(counts, waits, size)
        columns.update(self._capacity(counts, waits, now, slice_, size))
        self._waiting[:size] = counts["open_requests"]
        onset = self._deepen(log, activity, wanted, counts, slice_.start_ns, size)
        asked = slice_.end_ns - (oldest_s * 1e9).astype(np.int64)
        stalled = np.where(waits, np.maximum(self._admitted_ns[:size], asked), 0)
        return columns, {"open_requests": onset, "stall_steps": stalled}, {"open_requests": frames}

    def _reserve(self, size: int) -> None:
        self._alone.reserve(size)
        self._alone_s.reserve(size)
        self._peak, self._full_from, self._empty_from = (
            grow(a, size, 0.0) for a in (self._peak, self._full_from, self._empty_from)
        )
        self._admitted_at, self._freed, self._waiting = (
            grow(a, size, 0.0) for a in (self._admitted_at, self._freed, self._waiting)
        )
        self._deep_ns, self._admitted_ns = grow(self._deep_ns, size, 0), grow(self._admitted_ns, size, 0)

    def _arrive(
        self, log: RequestLog, activity: Activity, wanted: Array, steps: Steps, active: Array
    ) -> None:
        """Stamp new requests with the step count, and whether a slot was free and the queue empty."""
        rows = activity.arrived[wanted[activity.arrived]]
        pool = log.pool
        endpoint = pool["endpoint"][rows]
        pool["steps_at"][rows] = steps.at(endpoint, pool["request_ns"][rows])
        mates = np.bincount(endpoint, minlength=len(self._waiting))[endpoint] if len(rows) else endpoint
        free = active[endpoint] < FULL_SHARE * self._peak[endpoint]
        pool["alone"][rows] = (self._waiting[endpoint] == 0) & (mates == 1) & free

    def _answered(
        self, log: RequestLog, activity: Activity, wanted: Array, steps: Steps, size: int, window_s: float
    ) -> dict[str, Array]:
        pool = log.pool
        rows = activity.first[wanted[activity.first]]
        endpoint = pool["endpoint"][rows]
        made = steps.at(endpoint, pool["first_ns"][rows])
        np.maximum.at(self._admitted_at, endpoint, made)
        np.maximum.at(self._admitted_ns, endpoint, pool["first_ns"][rows])
        asked = pool["request_ns"][rows] > 0
        rows, endpoint, made = rows[asked], endpoint[asked], made[asked]
        came = np.maximum(pool["complete_ns"][rows], pool["request_ns"][rows])
        ttft_s = (pool["first_ns"][rows] - came) / 1e9
        alone = pool["alone"][rows] & ~pool["unsure"][rows]
        self._alone.push(endpoint[alone], (made - pool["steps_at"][rows])[alone])
        self._alone_s.learn(endpoint[alone], ttft_s[alone], window_s)
        every = np.arange(size)
        return {
            "ttft_s": grouped_quantile(endpoint, ttft_s, 0.5, size),
            "ttft_ref_s": self._alone_s.value[:size].copy(),
            "ttft_ref_steps": np.nan_to_num(self._alone.quantile(every, 0.5)),
        }

    def _free(self, counts: dict[str, Array], waits: Array, size: int) -> Array:
        kept = waits & (counts["first_tokens"] == 0)
        self._freed[:size] = np.where(kept, self._freed[:size] + counts["completions"], 0.0)
        return self._freed[:size].copy()

    def _capacity(
        self, counts: dict[str, Array], waits: Array, now: Array, slice_: Slice, size: int
    ) -> dict[str, Array]:
        active, peak = counts["active_streams"], self._peak[:size]
        rose = active > peak
        forgotten = peak * 0.5 ** ((slice_.end_ns - slice_.start_ns) / 1e9 / PEAK_HALF_S)
        peak = np.maximum(active, forgotten)
        full = waits & (active > 0) & (active >= FULL_SHARE * peak) & ~rose
        self._full_from[:size] = np.where(full, self._full_from[:size], now)
        empty = waits & (active > 0) & (active <= FREE_SHARE * peak) & (counts["first_tokens"] == 0)
        self._empty_from[:size] = np.where(empty, self._empty_from[:size], now)
        self._peak[:size] = peak
        return {
            "full_steps": now - self._full_from[:size],
            "empty_steps": now - self._empty_from[:size],
            "active_peak": peak,
            "active_share": active / np.maximum(peak, 1.0),
            "backlog_ratio": counts["open_requests"] / np.maximum(active, 1.0),
        }

    def _deepen(
        self,
        log: RequestLog,
        activity: Activity,
        wanted: Array,
        counts: dict[str, Array],
        start_ns: int,
        size: int,
    ) -> Array:
        """Return since when each queue is deep, 0 = it is not."""
        rows = activity.arrived[wanted[activity.arrived]]
        first = np.full(size, np.iinfo(np.int64).max)
        np.minimum.at(first, log.pool["endpoint"][rows], log.pool["request_ns"][rows])
        waiting, line = counts["open_requests"], np.maximum(DEEP_COUNT, DEEP_SHARE * counts["active_streams"])
        began = (self._deep_ns[:size] == 0) & (waiting >= line)
        at = np.where(first < np.iinfo(np.int64).max, first, start_ns)
        kept = np.where(waiting >= DEEP_KEPT * line, self._deep_ns[:size], 0)
        self._deep_ns[:size] = np.where(began, at, kept)
        return self._deep_ns[:size].copy()


def _oldest(log: RequestLog, wanted: Array, end_ns: int, now: Array, size: int) -> tuple[Array, Array, Array]:
    """Return step stamp, age in s and frame (size, 2) of the oldest waiting request per endpoint."""
    pool = log.pool
    rows = np.flatnonzero(pool["open"] & wanted & (pool["first_ns"] == 0) & (pool["request_ns"] > 0))
    rows = rows[np.argsort(-pool["request_ns"][rows], kind="stable")]  # the oldest is written last
    endpoint = pool["endpoint"][rows]
    stamp, age, frames = now.copy(), np.zeros(size), np.full((size, 2), -1, dtype=np.int64)
    stamp[endpoint] = pool["steps_at"][rows]
    age[endpoint] = (end_ns - pool["request_ns"][rows]) / 1e9
    frames[endpoint] = np.stack((pool["tap"][rows], pool["frame"][rows]), axis=1)
    return stamp, age, frames
