"""Requests and response streams per serving endpoint, and how an endpoint's pace compares with its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from skewscope.core.directory import Directory, Tap
from skewscope.core.features import FeatureColumn, FeatureRows, FeatureSpec, Slice
from skewscope.core.report import StreamRow
from skewscope.core.tables import Array
from skewscope.features.endpoint_pace import PACE_COLUMNS, EndpointPace
from skewscope.features.graph import GraphRows
from skewscope.features.request_log import Activity, RequestLog

MAX_REPORTED = 2000
"""Finished streams kept for the report, the latest ones."""

MAX_CHUNK_TIMES = 256
"""Chunk times kept per stream for the report."""

MAX_ENDPOINTS = 4096
"""Endpoints with features; a server end beyond that is followed but not judged."""


@dataclass
class EndpointRows(FeatureRows):
    """Rows per endpoint, and what the router family needs of single requests."""

    ids: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """int64 (rows,): endpoint ids, the index into `endpoints`."""
    endpoints: list[tuple[int, int]] = field(default_factory=list)
    """(address id, port) per endpoint id."""
    open_client: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """int64 (open,): address id of the client of each request that is open at the window's end."""
    open_endpoint: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """int64 (open,): its endpoint id."""
    open_waiting: Array = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    """bool (open,): no response byte yet."""
    open_uploading: Array = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    """bool (open,): its body is not complete."""
    new_client: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """int64 (new,): client of each request that arrived in the window, in order of arrival."""
    new_endpoint: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """int64 (new,): its endpoint id."""
    new_ns: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """int64 (new,): when it arrived."""
    pool: Mapping[str, Array] = field(default_factory=dict)
    """The request log's pool: fields by name, (rows,); rows that ended are given away after the window."""
    arrived: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """int64 (arrived,): pool rows of the requests that arrived in the window."""


COLUMNS = {
    "arrivals": FeatureColumn("1", "inference requests whose head came in"),
    "first_tokens": FeatureColumn("1", "responses that began"),
    "completions": FeatureColumn("1", "responses that ended"),
    "open_requests": FeatureColumn("1", "requests in without a response byte, at the window's end"),
    "uploading_requests": FeatureColumn("1", "requests whose body is not complete, at the window's end"),
    "active_streams": FeatureColumn("1", "responses begun and not ended, at the window's end"),
    "chunks": FeatureColumn("1", "response pieces sent (pieces of one segment joined)"),
    "egress_bytes": FeatureColumn("bytes", "response bytes sent in those streams that ended or are open"),
    "probes": FeatureColumn("1", "requests that are no inference: health checks, metrics, lists of models"),
    "errors": FeatureColumn("1", "responses that ended with status 429 or 5xx"),
    **PACE_COLUMNS,
}


class Streams:
    """Request and stream features of every endpoint that serves HTTP or TLS."""

    SPEC = FeatureSpec(
        "endpoint",
        "requests and response streams at an endpoint's own tap, or where its connections are seen",
        COLUMNS,
    )
    NEEDS: Sequence[str] = ("host",)

    def __init__(self) -> None:
        self.log = RequestLog()
        self._pace = EndpointPace()
        self._finished: deque[StreamRow] = deque(maxlen=MAX_REPORTED)
        self._times: dict[int, list[int]] = {}
        self._serving = np.zeros(0, dtype=np.bool_)

    def update(self, slice_: Slice, others: Mapping[str, FeatureRows]) -> EndpointRows:
        """Absorb one slice."""
        graph = cast(GraphRows, others["host"])
        activity = self.log.absorb(slice_, graph)
        self._note_times(activity)
        size = min(len(self.log.endpoints), MAX_ENDPOINTS)
        wanted = inference(self.log.pool)
        known = self.log.pool["endpoint"] < size
        columns = self._counts(activity, wanted & known, size)
        pace, onset, frames = self._pace.update(slice_, graph, self.log, activity, wanted & known, columns)
        columns.update(pace)
        self._serving = np.concatenate((self._serving, np.zeros(size - len(self._serving), dtype=np.bool_)))
        self._serving |= (columns["arrivals"] + columns["chunks"] + columns["active_streams"]) > 0
        self._finish(activity, wanted, slice_.directory)
        return self._rows(slice_, activity, wanted & known, columns, onset, frames)

    def rows_for_report(self, directory: Directory, taps: Sequence[Tap]) -> list[StreamRow]:
        """Return finished and open streams for the waterfall, in order of their first sign."""
        pool = self.log.pool
        open_ = [self._stream_row(int(r), directory) for r in np.flatnonzero(pool["open"] & inference(pool))]
        rows = [*self._finished, *open_]
        return sorted(rows, key=lambda r: r.request_ns or r.first_ns or 0)

    def _counts(self, activity: Activity, wanted: Array, size: int) -> dict[str, Array]:
        pool = self.log.pool
        endpoint = pool["endpoint"]

        def tally(rows: Array, weight: Array | None = None) -> Array:
            return np.bincount(endpoint[rows], weight, minlength=size)[:size].astype(np.float64)

        def of(rows: Array) -> Array:
            return rows[wanted[rows]]

        open_ = np.flatnonzero(pool["open"] & wanted)
        waiting = open_[(pool["first_ns"][open_] == 0) & (pool["request_ns"][open_] > 0)]
        short = waiting[_uploading(pool)[waiting]]
        ended = of(activity.ended)
        failed = (pool["status"][ended] >= 500) | (pool["status"][ended] == 429)
        chunk_rows = activity.chunk_row[wanted[activity.chunk_row]]
        others = activity.arrived[~wanted[activity.arrived] & (endpoint[activity.arrived] < size)]
        touched = np.unique(np.concatenate((chunk_rows, ended)))
        return {
            "arrivals": tally(of(activity.arrived)),
            "first_tokens": tally(of(activity.first)),
            "completions": tally(ended[pool["first_ns"][ended] > 0]),
            "open_requests": tally(waiting),
            "uploading_requests": tally(short),
            "active_streams": tally(open_[pool["first_ns"][open_] > 0]),
            "chunks": tally(chunk_rows),
            "egress_bytes": self._egress(touched, size),
            "probes": tally(others),
            "errors": tally(ended[failed]),
        }

    def _egress(self, rows: Array, size: int) -> Array:
        """Return the response bytes since the last window, per endpoint."""
        pool = self.log.pool
        fresh = pool["egress_bytes"][rows] - pool["told_bytes"][rows]
        pool["told_bytes"][rows] = pool["egress_bytes"][rows]
        return np.bincount(pool["endpoint"][rows], fresh, minlength=size)[:size]

    def _rows(
        self, slice_: Slice, activity: Activity, wanted: Array, columns: dict[str, Array],
        onset: dict[str, Array], frames: dict[str, Array],
    ) -> EndpointRows:  # fmt: skip
        pool = self.log.pool
        ids = np.flatnonzero(self._serving)
        names = slice_.directory.addresses
        keys = [endpoint_key(names[self.log.endpoints[i][0]], self.log.endpoints[i][1]) for i in ids]
        open_ = np.flatnonzero(pool["open"] & wanted)
        new = activity.arrived[wanted[activity.arrived]]
        new = new[np.argsort(pool["request_ns"][new], kind="stable")]
        return EndpointRows(
            "endpoint",
            keys,
            {n: v[ids] for n, v in columns.items()},
            {n: v[ids] for n, v in onset.items()},
            {n: v[ids] for n, v in frames.items()},
            ids=ids,
            endpoints=self.log.endpoints,
            open_client=pool["client"][open_],
            open_endpoint=pool["endpoint"][open_],
            open_waiting=pool["first_ns"][open_] == 0,
            open_uploading=_uploading(pool)[open_],
            new_client=pool["client"][new],
            new_endpoint=pool["endpoint"][new],
            new_ns=pool["request_ns"][new],
            pool=pool,
            arrived=activity.arrived,
        )

    def _note_times(self, activity: Activity) -> None:
        """Keep chunk times of the streams under way, for the waterfall."""
        order = np.argsort(activity.chunk_row, kind="stable")
        rows, starts = np.unique(activity.chunk_row[order], return_index=True)
        times = np.split(activity.chunk_ns[order], starts[1:]) if len(rows) else []
        for row, ts in zip(rows.tolist(), times, strict=True):
            kept = self._times.setdefault(row, [])
            kept.extend(int(t) for t in ts[: MAX_CHUNK_TIMES - len(kept)])

    def _finish(self, activity: Activity, wanted: Array, directory: Directory) -> None:
        for row in activity.ended.tolist():
            if wanted[row]:
                self._finished.append(self._stream_row(row, directory))
            self._times.pop(row, None)

    def _stream_row(self, row: int, directory: Directory) -> StreamRow:
        p = {n: int(v[row]) for n, v in self.log.pool.items() if n in _REPORTED}
        address, port = self.log.endpoints[p["endpoint"]]
        tap = directory.taps[p["tap"]].path if 0 <= p["tap"] < len(directory.taps) else ""
        return StreamRow(
            endpoint_key(directory.addresses[p["client"]], p["client_port"]),
            endpoint_key(directory.addresses[address], port),
            p["request_ns"] or None,
            p["first_ns"] or None,
            p["end_ns"] or None,
            list(self._times.get(row, ())),
            p["status"],
            (tap, p["frame"]) if tap else None,
        )


_REPORTED = frozenset(
    ("endpoint", "client", "client_port", "request_ns", "first_ns", "end_ns", "status", "tap", "frame")
)


def _uploading(pool: Mapping[str, Array]) -> Array:
    found: Array = (pool["request_bytes"] < pool["expected_bytes"]) & (pool["first_ns"] == 0)
    return found


def inference(pool: Mapping[str, Array]) -> Array:
    """Return which pool rows are inference: a POST, an event stream, or a stream begun before the capture.

    Health probes, `/metrics` and model lists are GETs with a plain answer and stay out.
    """
    headless = (pool["request_ns"] == 0) & (pool["streaming"] != 2) & (pool["chunks"] >= 1)
    found: Array = (pool["method"] == 2) | (pool["streaming"] == 1) | headless
    followed: Array = pool["endpoint"] >= 0
    return found & followed


def endpoint_key(address: str, port: int) -> str:
    """Return the canonical id of an endpoint, IPv6 addresses in brackets."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


FEATURE = Streams
