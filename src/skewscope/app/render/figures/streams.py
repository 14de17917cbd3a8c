"""Stream waterfall: request, first byte, chunks and stalls of each response."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from skewscope.app.render.figures.names import Names, address_of
from skewscope.app.render.figures.scale import Tick, share, time_ticks
from skewscope.app.render.units import offset, plural, seconds
from skewscope.app.render.wording import base_name
from skewscope.core.report import Report, StreamRow

MAX_ROWS = 36
STALL = 2.0
"""A gap so many times the typical one of all streams shown is drawn as a stall."""
WINDOW_NS = 60_000_000_000


@dataclass
class Stream:
    """One response, positions in thousandths of the width."""

    name: str
    endpoint: str
    wait: tuple[float, float] | None
    body: tuple[float, float] | None
    ticks_path: str
    stalls: list[tuple[float, float, str]]
    ttft: str
    gap: str
    open_end: bool
    tip: str


@dataclass
class Band:
    """An incident's stretch, in percent of the width."""

    x: float
    width: float
    label: str
    cut: bool = False
    """The incident began before the window."""
    row: int = 0


@dataclass
class StreamFigure:
    """The waterfall."""

    rows: list[Stream]
    ticks: list[Tick]
    bands: list[Band] = field(default_factory=list)
    hidden: int = 0


def bands(report: Report, start_ns: int, end_ns: int) -> list[Band]:
    """Return the incidents' stretches within a window."""
    out = []
    for incident in report.incidents:
        end = incident.end_ns if incident.end_ns is not None else report.span_ns[1]
        x, right = (share(t, start_ns, end_ns, 100.0) for t in (incident.onset_ns, end))
        if incident.onset_ns < end_ns and end > start_ns:
            out.append(
                Band(x, round(max(right - x, 0.4), 2), incident.condition, incident.onset_ns < start_ns)
            )
    return out


def stacked(given: list[Band]) -> list[Band]:
    """Give each band the first row in which it covers no other, and return them all."""
    ends: list[float] = []
    for band in sorted(given, key=lambda b: b.x):
        row = next((k for k, end in enumerate(ends) if end <= band.x), len(ends))
        if row == len(ends):
            ends.append(0.0)
        ends[row] = band.x + band.width
        band.row = row
    return given


def stream_figure(report: Report, names: Names) -> StreamFigure | None:
    """Return the waterfall, or None where no stream was seen."""
    rows = [s for s in report.streams if _first(s) is not None]
    if not rows:
        return None
    cut = report.span_ns[1]
    start, end = _window(report, rows)
    inside = [s for s in rows if (_first(s) or 0) <= end and _until(s, cut) >= start]
    chosen = _thin(sorted(inside, key=lambda s: _first(s) or 0))
    if not chosen:
        return None
    start = max(start, min(_first(s) or start for s in chosen))
    end = min(end, max(_until(s, cut) for s in chosen))
    limit = STALL * _typical_gap(chosen)
    origin = report.span_ns[0]
    drawn = [_stream(s, start, end, limit, names, report.span_ns) for s in chosen]
    ticks = time_ticks((start - origin) / 1e9, (end - origin) / 1e9, 5, sign=True)
    return StreamFigure(drawn, ticks, bands(report, start, end), len(rows) - len(chosen))


def _first(row: StreamRow) -> int | None:
    known = [t for t in (row.request_ns, row.first_ns, *row.chunk_ns[:1], row.end_ns) if t]
    return min(known) if known else None


def _last(row: StreamRow) -> int:
    return max(t for t in (row.request_ns, row.first_ns, *row.chunk_ns[-1:], row.end_ns) if t)


def _until(row: StreamRow, cut: int) -> int:
    """Return when a stream ended; one that is open lasts to the end of the captures."""
    return _last(row) if row.end_ns is not None else max(_last(row), cut)


def _window(report: Report, rows: list[StreamRow]) -> tuple[int, int]:
    start = min(_first(s) or 0 for s in rows)
    end = max(_until(s, report.span_ns[1]) for s in rows)
    if end - start > WINDOW_NS and report.incidents:
        onset = report.incidents[0].onset_ns
        return max(start, onset - WINDOW_NS // 3), min(end, onset + 2 * WINDOW_NS // 3)
    return start, min(end, start + 5 * WINDOW_NS)


def _thin(rows: list[StreamRow]) -> list[StreamRow]:
    if len(rows) <= MAX_ROWS:
        return rows
    return [rows[k * (len(rows) - 1) // (MAX_ROWS - 1)] for k in range(MAX_ROWS)]


def _gaps(row: StreamRow) -> list[int]:
    return [b - a for a, b in zip(row.chunk_ns, row.chunk_ns[1:], strict=False)]


def _typical_gap(rows: list[StreamRow]) -> float:
    gaps = [g for row in rows for g in _gaps(row) if g > 0]
    return float(statistics.median(gaps)) if gaps else float("inf")


def _stream(
    row: StreamRow, start: int, end: int, limit: float, names: Names, span: tuple[int, int]
) -> Stream:
    first, last = row.first_ns, _last(row)
    wait = None
    if row.request_ns and first:
        wait = (share(row.request_ns, start, end), share(first, start, end))
    body = (share(first, start, end), share(last, start, end)) if first else None
    marks = sorted({round(share(t, start, end)) for t in row.chunk_ns if start <= t <= end})
    stalls = [
        (share(a, start, end), share(b, start, end), seconds((b - a) / 1e9))
        for a, b in zip(row.chunk_ns, row.chunk_ns[1:], strict=False)
        if b - a > limit and b > start and a < end
    ]
    if row.end_ns is None and span[1] - last > limit and last < end:
        silent = f"{seconds((span[1] - last) / 1e9)}, to the end of the captures"
        stalls.append((share(last, start, end), share(span[1], start, end), silent))
    ttft = seconds((first - row.request_ns) / 1e9) if row.request_ns and first else ""
    gaps = _gaps(row)
    gap = seconds(statistics.median(gaps) / 1e9) if gaps else ""
    return Stream(
        name=names.of(address_of(row.client)),
        endpoint=names.of(row.endpoint),
        wait=wait,
        body=body,
        ticks_path="".join(f"M{x} 3V17" for x in marks),
        stalls=stalls,
        ttft=ttft,
        gap=gap,
        open_end=row.end_ns is None,
        tip=_tip(row, ttft, gap, span[0]),
    )


def _tip(row: StreamRow, ttft: str, gap: str, origin: int) -> str:
    parts = [f"{row.client} to {row.endpoint}"]
    if row.request_ns:
        parts.append(f"asked at {offset(row.request_ns, origin)}")
    if ttft:
        parts.append(f"first byte after {ttft}")
    if gap:
        parts.append(f"{plural(len(row.chunk_ns), 'chunk')}, median gap {gap}")
    if row.end_ns is None:
        parts.append("not finished when the capture ended")
    if row.frame:
        parts.append(f"{base_name(row.frame[0])} frame {row.frame[1]}")
    return ", ".join(parts)
