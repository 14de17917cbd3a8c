"""The report as one self-contained HTML page: no external asset, both themes, any width."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from jinja2 import Environment, PackageLoader, StrictUndefined

from skewscope import __version__
from skewscope.app import catalog
from skewscope.app.render import contents, units, wording
from skewscope.app.render.figures.lanes import lane_figures
from skewscope.app.render.figures.names import Names, names_of
from skewscope.app.render.figures.scale import Tick, time_ticks
from skewscope.app.render.figures.series import series_charts
from skewscope.app.render.figures.streams import Band, bands, stacked, stream_figure
from skewscope.app.render.figures.topology import topology
from skewscope.core.report import Evidence, Incident, Report

_GAP = re.compile(r"(?<=\d) (?=(?:ms|s|µs|ns|min|h|kB|MB|GB|TB|bytes|[kMGT]?bit/s|tokens/s)\b|%)")


@dataclass
class Pair:
    """An impact figure before and during, with bar lengths in percent."""

    label: str
    before: str
    during: str
    times: str
    before_share: float
    during_share: float


@dataclass
class Fact:
    """A row of the evidence table."""

    name: str
    value: str
    baseline: str
    times: str
    packets: list[tuple[str, str, str]] = field(default_factory=list)
    more: int = 0


@dataclass
class Card:
    """One incident, worded."""

    incident: Incident
    name: str
    sentence: str
    began: str
    lasted: str
    decided: str
    pairs: list[Pair]
    facts: list[Fact]
    ruled_out: list[tuple[str, str]]
    marks: list[tuple[str, str]]
    victims: list[tuple[str, str]]
    also: list[str]


@dataclass
class Strip:
    """The whole capture as one line, with the incidents on it."""

    ticks: list[Tick]
    bands: list[Band]
    rows: int


def _pairs(incident: Incident) -> list[Pair]:
    impact = incident.impact
    out = []
    for label, (before, during) in (
        ("round interval", impact.step_s),
        ("time to first byte", impact.ttft_s),
        ("chunk gap", impact.chunk_gap_s),
    ):
        if not (units.known(before) or units.known(during)):
            continue
        top = max(v for v in (before, during) if v is not None and units.known(v)) or 1.0
        shares = [100 * v / top if v is not None and units.known(v) else 0.0 for v in (before, during)]
        texts = [units.quantity(v, "s") for v in (before, during)]
        out.append(Pair(label, texts[0], texts[1], units.factor(before, during), *map(_round, shares)))
    return out


def _round(value: float) -> float:
    return round(value, 1)


def _fact(evidence: Evidence, shown: int = 3) -> Fact:
    packets = [
        (wording.base_name(file), str(frame), wording.wireshark(file, first=frame))
        for file, frame in evidence.packets
    ]
    packets += [
        (
            wording.base_name(span.file),
            wording.frames(span),
            wording.wireshark(span.file, span.display_filter, first=span.first, last=span.last),
        )
        for span in evidence.spans
    ]
    baseline = "" if evidence.baseline is None else units.quantity(evidence.baseline, evidence.unit)
    return Fact(
        evidence.name,
        units.quantity(evidence.value, evidence.unit),
        baseline,
        units.factor(evidence.baseline, evidence.value),
        packets[:shown],
        max(0, len(packets) - shown),
    )


def _card(incident: Incident, report: Report) -> Card:
    origin = report.span_ns[0]
    delay = (incident.detected_ns - incident.onset_ns) / 1e9
    marks = sorted(incident.timeline, key=lambda m: m.ts_ns)
    return Card(
        incident=incident,
        name=wording.condition(incident),
        sentence=wording.sentence(incident),
        began=f"{units.utc(incident.onset_ns)} UTC ({units.offset(incident.onset_ns, origin)})",
        lasted=wording.ended(incident, report),
        decided=units.seconds(delay) if delay > 0 else "",
        pairs=_pairs(incident),
        facts=[_fact(e) for e in incident.evidence],
        ruled_out=[(catalog.full_name(r.condition), r.why) for r in incident.ruled_out],
        marks=[(units.offset(m.ts_ns, origin), m.text) for m in marks],
        victims=wording.victims(incident),
        also=[catalog.full_name(c) for c in incident.also],
    )


def _strip(report: Report) -> Strip:
    first, last = report.span_ns
    placed = stacked(bands(report, first, last))
    rows = max((b.row for b in placed), default=0) + 1
    return Strip(time_ticks(0.0, (last - first) / 1e9, 6), placed, rows)


def _missing(report: Report) -> list[tuple[str, str]]:
    """Return each condition that was not judged, with the features it lacks."""
    return [(catalog.full_name(n.condition), ", ".join(n.missing)) for n in report.no_data]


def tie(value: object) -> object:
    """Keep number and unit on one line (markup is left alone: its parts were tied before)."""
    return _GAP.sub("\u00a0", value) if type(value) is str else value


def _environment() -> Environment:
    env = Environment(
        loader=PackageLoader("skewscope.app.render"),
        autoescape=True,
        finalize=tie,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(
        percent=units.percent,
        quantity=units.quantity,
        utc=units.utc,
        base_name=wording.base_name,
        short_name=wording.short_name,
    )
    env.tests["known"] = units.known
    return env


def status(report: Report) -> str:
    """Return fault, healthy or empty: what the page's first glance shows."""
    if report.incidents:
        return "fault"
    return "healthy" if any(i.packets for i in report.inputs) else "empty"


def render(report: Report) -> str:
    """Return the page as text."""
    names: Names = names_of(report)
    page = _environment().get_template("report.html.j2")
    return page.render(
        report=report,
        version=__version__,
        status=status(report),
        headline=wording.headline(report),
        coverage=wording.coverage(report),
        span=units.quantity(wording.span_s(report), "s"),
        cards=[_card(i, report) for i in report.incidents],
        strip=_strip(report),
        lanes=lane_figures(report, names),
        streams=stream_figure(report, names),
        topology=topology(report, names),
        charts=series_charts(report, names),
        names=names,
        missing=_missing(report),
        clocks=contents.clocks(report),
        cannot_see=[s for s in contents.cannot_see(report) if not s.startswith("Not judged")],
    )
