"""What an incident cost, from the series of endpoints and groups before and during it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skewscope.core.report import Impact, Series
from skewscope.diagnose.context import Context, host_of

BEFORE_NS = 30_000_000_000
"""How far back the time before an incident reaches."""

SETTLE_NS = 200_000_000
"""Windows this close before the onset are left out: the onset is known to about a window."""


def impact(context: Context, hosts: Sequence[str], onset_ns: int, end_ns: int | None) -> Impact:
    """Compare service before and during, over the endpoints that the hosts take part in."""
    end = end_ns if end_ns is not None else context.last_ns
    endpoints = _endpoints(context, hosts)
    groups = {g for h in hosts if (g := context.group_of(h)) is not None}
    groups |= {context.endpoint_groups[e] for e in endpoints if e in context.endpoint_groups}
    chosen = [s for s in context.series if s.scope == "endpoint" and s.key in endpoints]
    result = Impact()
    result.ttft_s = _pair(chosen, "ttft_s", onset_ns, end)
    result.chunk_gap_s = _pair(chosen, "chunk_gap_s", onset_ns, end)
    steps = [s for s in context.series if s.scope == "group" and s.key in groups]
    result.step_s = _pair(steps, "interval_s", onset_ns, end)
    before, during = _rate(chosen, onset_ns, end)
    if before is not None and during is not None:
        result.tokens_per_s_lost = max(0.0, before - during)
    active = [v for s in chosen if s.name == "active_streams" for v in _values(s, onset_ns, end)]
    result.streams = int(max(active, default=0))
    result.requests = int(sum(v for s in chosen if s.name == "arrivals" for v in _values(s, onset_ns, end)))
    return result


def _endpoints(context: Context, hosts: Sequence[str]) -> set[str]:
    every = {s.key for s in context.series if s.scope == "endpoint"}
    engines = {e for e in every if e in context.endpoint_groups} or every
    groups = {context.group_of(h) for h in hosts} - {None}
    mine = {e for e in engines if host_of(e) in hosts or context.endpoint_groups.get(e) in groups}
    return mine or engines


def _values(series: Series, start_ns: int, end_ns: int) -> list[float]:
    pairs = zip(series.ts_ns, series.values, strict=True)
    return [v for ts, v in pairs if start_ns < ts <= end_ns and v is not None]


def _pair(
    series: Sequence[Series], name: str, onset_ns: int, end_ns: int
) -> tuple[float | None, float | None]:
    named = [s for s in series if s.name == name]
    before = [v for s in named for v in _values(s, onset_ns - BEFORE_NS, onset_ns - SETTLE_NS)]
    during = [v for s in named for v in _values(s, onset_ns, end_ns)]
    if name == "ttft_s":
        return _median(before), _median(during)
    # Means: pauses that a median would hide are what an incident costs.
    return _mean(before), _mean(during)


def _rate(series: Sequence[Series], onset_ns: int, end_ns: int) -> tuple[float | None, float | None]:
    """Return response pieces per second before and during, summed over endpoints."""
    chunks = [s for s in series if s.name == "chunks"]

    def mean(start: int, end: int) -> float | None:
        values = [_values(s, start, end) for s in chunks]
        spans = [s.ts_ns[1] - s.ts_ns[0] for s in chunks if len(s.ts_ns) > 1]
        if not spans or not any(values):
            return None
        longest = max(len(v) for v in values)
        return sum(sum(v) for v in values) / (longest * min(spans) / 1e9)

    return mean(onset_ns - BEFORE_NS, onset_ns - SETTLE_NS), mean(onset_ns, end_ns)


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _median(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None
