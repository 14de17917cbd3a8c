"""Small multiples: the features behind the verdict over time, the culprit's line on top."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass, field

from skewscope.app.render.figures.names import Names
from skewscope.app.render.figures.scale import Tick, share, step_for, time_ticks
from skewscope.app.render.figures.streams import Band, bands
from skewscope.app.render.units import quantity
from skewscope.core.report import Report, Series

MAX_CHARTS, MAX_EVIDENCE, MAX_LINES, MAX_POINTS = 6, 4, 40, 400
NOISE = 0.05
"""The axis goes below zero only for values larger than this share of the largest."""
COST = ("chunk_gap", "ttft", "step_s")
"""Features that say what an incident costs start with one of these."""
HEIGHT = 100.0


@dataclass
class Line:
    """One scope's line as an SVG path in a box of 1000 x 100."""

    name: str
    path: str
    culprit: bool
    dots: str = ""


@dataclass
class Chart:
    """One feature over time."""

    name: str
    unit: str
    scope: str
    lines: list[Line]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    peak: str
    bands: list[Band] = field(default_factory=list)
    hidden: int = 0
    summary: str = ""


def series_charts(report: Report, names: Names) -> list[Chart]:
    """Return the charts that matter most: what the evidence names, then what changed most."""
    families: dict[tuple[str, str], list[Series]] = {}
    for one in report.series:
        if sum(_known(v) for v in one.values) > 1:
            families.setdefault((one.scope, one.name), []).append(one)
    ranked = [
        (_place(scope, name, report), -max(_moved(s, report) for s in members), members)
        for (scope, name), members in families.items()
    ]
    ranked.sort(key=lambda row: row[:2])
    evidence = [members for place, _, members in ranked if place[0] == 0]
    rest = [members for place, _, members in ranked if place[0] > 0]
    chosen = [*evidence[:MAX_EVIDENCE], *rest, *evidence[MAX_EVIDENCE:]][:MAX_CHARTS]
    return [_chart(members, report, names) for members in chosen]


def _place(scope: str, name: str, report: Report) -> tuple[int, int]:
    """Rank a feature: behind the first verdict, then what it cost, then the culprit's other features."""
    if not report.incidents:
        return (1, 0) if name.startswith(COST) else (2, 0)
    first = report.incidents[0]
    scopes = {f.scope for f in first.findings[:1]}
    wanted = [e.name for e in first.evidence]
    if name in wanted and (scope in scopes or not scopes):
        return 0, wanted.index(name)
    if name.startswith(COST):
        return 1, 0
    return (2, 0) if scope in scopes else (3, 0)


def _marked(series: Series, names: Names) -> bool:
    """Say whether a line is the culprit's; a link's series goes by its host."""
    return names.is_culprit(series.key) or (series.scope == "link" and series.key in names.near)


def _known(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


def _moved(series: Series, report: Report) -> float:
    if not report.incidents:
        return 0.0
    onset = report.incidents[0].onset_ns
    pairs = [(t, v) for t, v in zip(series.ts_ns, series.values, strict=False) if v is not None and _known(v)]
    before = [v for t, v in pairs if t <= onset]
    after = [v for t, v in pairs if t > onset]
    if not before or not after:
        return 0.0
    low, high = statistics.median(before), statistics.median(after)
    return abs(high - low) / (abs(low) + abs(high) or 1.0)


def _chart(members: list[Series], report: Report, names: Names) -> Chart:
    members = sorted(members, key=lambda s: (not _marked(s, names), s.key))
    shown = members[:MAX_LINES]
    start, end = report.span_ns
    values = [v for s in shown for v in s.values if v is not None and _known(v)]
    low, high = min(0.0, min(values)), max(values)
    low = low if low < -NOISE * high else 0.0
    high = high if high > low else low + 1.0
    step = step_for(high - low, 2)
    low = math.floor(low / step + 1e-9) * step
    top = math.ceil(high / step - 1e-9) * step
    lines = [_line(s, start, end, low, top, names) for s in reversed(shown)]
    marks = [low + k * step for k in range(round((top - low) / step) + 1)]
    unit = shown[0].unit
    return Chart(
        name=shown[0].name,
        unit=unit,
        scope=shown[0].scope,
        lines=lines,
        x_ticks=time_ticks(0.0, (end - start) / 1e9, 4),
        y_ticks=[Tick(100 - share(v, low, top, 100.0), quantity(v, unit)) for v in marks],
        peak=quantity(high, unit),
        bands=bands(report, start, end),
        hidden=len(members) - len(shown),
        summary=_summary(shown, report, names),
    )


def _summary(members: list[Series], report: Report, names: Names) -> str:
    """Say in words what the chart shows: the first line's median before and during the incident."""
    first = members[0]
    pairs = [(t, v) for t, v in zip(first.ts_ns, first.values, strict=False) if v is not None and _known(v)]
    if not report.incidents:
        return f"{names.of(first.key)}: median {quantity(statistics.median(v for _, v in pairs), first.unit)}"
    onset = report.incidents[0].onset_ns
    end = report.incidents[0].end_ns or report.span_ns[1]
    before = [v for t, v in pairs if t <= onset]
    during = [v for t, v in pairs if onset < t <= end]
    parts = [
        f"{quantity(statistics.median(vs), first.unit)} {word}"
        for vs, word in ((before, "before"), (during, "during"))
        if vs
    ]
    if during:
        parts.append(f"at most {quantity(max(during), first.unit)}")
    return f"{names.of(first.key)}: " + (", ".join(parts) or "not known")


def _line(series: Series, start: int, end: int, low: float, top: float, names: Names) -> Line:
    every = max(1, math.ceil(len(series.ts_ns) / MAX_POINTS))
    path: list[str] = []
    dots: list[str] = []
    pen_down, run = False, 0
    for t, value in _thinned(series, every):
        if value is None or not _known(value):
            if run == 1:
                dots.append(path[-1] + "h0")
            pen_down, run = False, 0
            continue
        x = share(t, start, end)
        y = round(HEIGHT - share(value, low, top, HEIGHT), 2)
        path.append(f"{'L' if pen_down else 'M'}{x:g} {y:g}")
        pen_down, run = True, run + 1
    if run == 1:
        dots.append(path[-1] + "h0")
    return Line(names.of(series.key), "".join(path), _marked(series, names), "".join(dots))


def _thinned(series: Series, every: int) -> list[tuple[int, float | None]]:
    """Keep the largest known value of each run of `every` samples: peaks must not vanish."""
    pairs = list(zip(series.ts_ns, series.values, strict=False))
    if every == 1:
        return pairs
    out: list[tuple[int, float | None]] = []
    for k in range(0, len(pairs), every):
        part = [(t, v) for t, v in pairs[k : k + every] if v is not None and _known(v)]
        out.append(max(part, key=lambda tv: tv[1]) if part else (pairs[k][0], None))
    return out
