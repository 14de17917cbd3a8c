"""Swim lanes: a healthy step of a group beside a faulty one, on one time scale."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field

from skewscope.app.render.figures.names import Names, order
from skewscope.app.render.figures.scale import Tick, share, time_ticks
from skewscope.app.render.units import offset, seconds
from skewscope.app.render.wording import base_name
from skewscope.core.report import Lanes, LaneSpan, Report

KINDS = ("own", "inside", "wait", "transit")
NAMES = {
    "own": "own time",
    "inside": "stopped inside the round",
    "wait": "waiting for others",
    "transit": "exchange under way",
}
MIN_WIDTH = 2.0
"""Shortest bar in thousandths of the width: what lasts microseconds must still be seen."""
MAX_MEMBERS = 64
HOT = 1.2
"""What a culprit holds is drawn in the fault's colour from so many times the members' median on."""
HELD = ("own", "inside")
"""What a member itself takes; the rest of a round it waits or exchanges."""
CALM = frozenset({"healthy", "usual"})
"""Labels of stretches without the fault."""


@dataclass
class Bar:
    """One span: position and width in thousandths, and what it says when asked."""

    kind: str
    x: float
    width: float
    tip: str


@dataclass
class Row:
    """One member's lane."""

    name: str
    address: str
    culprit: bool
    """Accused, or at the host whose link is accused."""
    hot: bool
    """What it holds is drawn in the fault's colour."""
    held: str
    bars: list[Bar] = field(default_factory=list)
    totals: dict[str, str] = field(default_factory=dict)


@dataclass
class Panel:
    """One step, drawn."""

    title: str
    faulty: bool
    when: str
    lasts: str
    rows: list[Row]
    ticks: list[Tick]
    hidden: int = 0


@dataclass
class LaneFigure:
    """All panels of one group, on one scale."""

    group: str
    panels: list[Panel]
    kinds: list[tuple[str, str]]
    hot: bool = False


def lane_figures(report: Report, names: Names) -> list[LaneFigure]:
    """Return one figure per group, the group that holds a culprit first."""
    groups: dict[str, list[Lanes]] = {}
    for lanes in report.lanes:
        if lanes.end_ns > lanes.start_ns and lanes.spans:
            groups.setdefault(lanes.group, []).append(lanes)
    figures = [_figure(group, steps, report, names) for group, steps in groups.items()]
    return sorted(figures, key=lambda f: not any(r.culprit for p in f.panels for r in p.rows))


def _figure(group: str, steps: list[Lanes], report: Report, names: Names) -> LaneFigure:
    longest = max(s.end_ns - s.start_ns for s in steps)
    steps = sorted(steps, key=lambda s: (s.label not in CALM, s.start_ns))
    panels = [_panel(s, longest, report, names) for s in steps]
    used = {span.kind for s in steps for span in s.spans}
    hot = any(r.hot for p in panels for r in p.rows)
    return LaneFigure(group, panels, [(k, NAMES[k]) for k in KINDS if k in used], hot)


def _panel(lanes: Lanes, longest: int, report: Report, names: Names) -> Panel:
    members = list(dict.fromkeys(s.member for s in lanes.spans))
    members.sort(key=order)
    keep = sorted(members, key=lambda m: not names.is_culprit(m))[:MAX_MEMBERS]
    rows = [_row(m, lanes, longest, names) for m in members if m in keep]
    return Panel(
        title=(lanes.label if " " in lanes.label else f"{lanes.label} rounds").capitalize(),
        faulty=lanes.label not in CALM,
        when=offset(lanes.start_ns, report.span_ns[0]),
        lasts=seconds((lanes.end_ns - lanes.start_ns) / 1e9),
        rows=rows,
        ticks=time_ticks(0, longest / 1e9, 4),
        hidden=len(members) - len(rows),
    )


def _row(member: str, lanes: Lanes, longest: int, names: Names) -> Row:
    spans = [s for s in lanes.spans if s.member == member]
    totals = {k: sum(s.end_ns - s.start_ns for s in spans if s.kind == k) for k in KINDS}
    held = sum(totals[k] for k in HELD)
    return Row(
        name=names.of(member),
        address=member,
        culprit=names.is_culprit(member) or member in names.near,
        hot=names.is_culprit(member) and held >= HOT * _typical_held(lanes),
        held=seconds(held / 1e9),
        bars=[_bar(s, lanes, longest) for s in sorted(spans, key=lambda s: s.start_ns)],
        totals={k: seconds(v / 1e9) for k, v in totals.items()},
    )


def _typical_held(lanes: Lanes) -> float:
    """Return the median of what the members hold themselves, in ns."""
    sums: dict[str, int] = {}
    for span in lanes.spans:
        sums[span.member] = sums.get(span.member, 0) + (span.end_ns - span.start_ns) * (span.kind in HELD)
    return float(statistics.median(sums.values()))


def _bar(span: LaneSpan, lanes: Lanes, longest: int) -> Bar:
    start = share(span.start_ns - lanes.start_ns, 0, longest)
    end = share(span.end_ns - lanes.start_ns, 0, longest)
    text = f"{NAMES.get(span.kind, span.kind)} {seconds((span.end_ns - span.start_ns) / 1e9)}"
    if span.frame:
        text += f", {base_name(span.frame[0])} frame {span.frame[1]}"
    kind = span.kind if span.kind in KINDS else "other"
    return Bar(kind, start, round(max(end - start, MIN_WIDTH), 2), text)
