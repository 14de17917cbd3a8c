"""Sentences that every renderer shares, so that terminal and page say the same thing."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Sequence
from pathlib import PurePath

from skewscope.app import catalog
from skewscope.app.render.units import factor, known, plural, quantity
from skewscope.core.report import Culprit, Evidence, FrameSpan, Impact, Incident, Report

UNKNOWN = "unknown"


def clean(text: str) -> str:
    """Replace control characters, so that a file name cannot steer a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in str(text))


def _hosts(key: str) -> list[str]:
    """Return an id and the addresses in it, longest first: "a->b", "addr:port", "host/gpu3"."""
    ends = key.split("->")
    return [key, *ends, *(end.rpartition(":")[0] or end for end in ends)]


def short_name(name: str, key: str) -> str:
    """Return a name without the address that may follow it: "n2" for "n2 (10.77.0.12)"."""
    for part in _hosts(key):
        name = name.replace(f" ({part})", "")
    return name or key


def suspect(culprit: Culprit) -> str:
    """Name a culprit once, with its address: "rank 2 (10.77.0.12)"."""
    if not culprit.name or culprit.name == culprit.id:
        return f"{culprit.kind} {culprit.id}"
    if any(part in culprit.name for part in _hosts(culprit.id)):
        return culprit.name
    return f"{culprit.name} ({culprit.id})"


def condition(incident: Incident) -> str:
    """Return "c20 tp_straggler"."""
    return catalog.full_name(incident.condition)


def sentence(incident: Incident) -> str:
    """Return what happened as one sentence without the condition's name."""
    text = incident.summary.strip()
    for prefix in (condition(incident), incident.condition):
        if prefix and text.lower().startswith(prefix.lower()):
            text = text[len(prefix) :].lstrip(" :,-")
    if not text:
        text = incident.title
        if incident.culprits:
            text = f"{suspect(incident.culprits[0])}: {text}"
    return clean(text).rstrip(".") + "."


def headline(report: Report) -> str:
    """Return the verdict of the whole run in one sentence."""
    if report.incidents:
        first = report.incidents[0]
        more = len(report.incidents) - 1
        tail = f" {plural(more, 'further incident')} below." if more else ""
        return f"{condition(first)}: {sentence(first)}{tail}"
    if not any(i.packets for i in report.inputs):
        return "No verdict: the inputs hold no packets that skewscope could judge."
    return f"Nothing found: no condition held in {quantity(span_s(report), 's')} of traffic."


def span_s(report: Report) -> float:
    """Return the length of the captures in seconds."""
    return max(0, report.span_ns[1] - report.span_ns[0]) / 1e9


def coverage(report: Report) -> str:
    """Say in one sentence what was seen."""
    packets = sum(i.packets for i in report.inputs)
    read = sum(sum(i.rows.values()) for i in report.inputs)
    parts = [plural(packets, "packet"), f"{quantity(span_s(report), 's')} of traffic"] if packets else []
    if read or not parts:
        parts.append(plural(read, "reading") if read else plural(packets, "packet"))
    if report.hosts:
        parts.append(plural(len(report.hosts), "host"))
    for group in report.groups:
        pace = f"; a round every {quantity(group.step_s, 's')}" if known(group.step_s) else ""
        parts.append(f"a group of {len(group.members)} ({group.framing}{pace})")
    if report.streams:
        parts.append(plural(len(report.streams), "response stream"))
    return f"{plural(len(report.inputs), 'input')}: " + ", ".join(parts) + "."


def not_judged(report: Report, shown: int = 4) -> str:
    """Summarise the conditions without data in one sentence ("" where all were judged)."""
    if not report.no_data:
        return ""
    by_feature: dict[str, list[str]] = defaultdict(list)
    for one in report.no_data:
        for name in one.missing or ["(not stated)"]:
            by_feature[name].append(one.condition)
    ranked = sorted(by_feature.items(), key=lambda kv: (-len(kv[1]), kv[0]))
    parts = [f"{name} ({', '.join(sorted(set(codes)))})" for name, codes in ranked[:shown]]
    rest = f" and {plural(len(ranked) - shown, 'more feature')}" if len(ranked) > shown else ""
    count = plural(len({n.condition for n in report.no_data}), "condition")
    return f"Not judged for lack of data, which is not health: {count}; missing {', '.join(parts)}{rest}."


def change(pair: tuple[float | None, float | None], unit: str) -> str:
    """Format a pair: "86 ms -> 143 ms (x1.66)"."""
    before, during = pair
    times = factor(before, during)
    tail = f"  ({times})" if times else ""
    return f"{quantity(before, unit)} → {quantity(during, unit)}{tail}"


def impact_rows(impact: Impact) -> list[tuple[str, str]]:
    """Return label and text of every impact figure that was seen."""
    rows = []
    if known(impact.tokens_per_s_lost):
        rows.append(("tokens/s lost", quantity(impact.tokens_per_s_lost, "1")))
    for label, pair in (
        ("round interval", impact.step_s),
        ("time to first byte", impact.ttft_s),
        ("chunk gap", impact.chunk_gap_s),
    ):
        if known(pair[0]) or known(pair[1]):
            rows.append((label, change(pair, "s")))
    if impact.streams or impact.requests:
        rows.append(("touched", f"{plural(impact.streams, 'stream')}, {plural(impact.requests, 'request')}"))
    return rows


def traces(evidence: Evidence, shown: int = 1) -> str:
    """Return where a number comes from: "n2.pcap.gz:10235 (+3 more)", or "n2.pcap.gz:10001-10235"."""
    parts = [f"{base_name(file)}:{frame}" for file, frame in evidence.packets] or [
        f"{base_name(span.file)}:{frames(span)}" for span in evidence.spans
    ]
    more = len(parts) - shown
    return clean(", ".join(parts[:shown])) + (f" +{more}" if more > 0 else "")


def frames(span: FrameSpan) -> str:
    """Return a span's frame numbers: "7" or "7-90"."""
    return str(span.first) if span.first == span.last else f"{span.first}-{span.last}"


def wireshark(file: str, display_filter: str = "", *, first: int, last: int = 0) -> str:
    """Return the shell command that opens a file at one frame, or shows the packets of a span."""
    if not last:
        return f"wireshark -r {shlex.quote(file)} -g {first}"
    both = [f"frame.number >= {first} && frame.number <= {last}", display_filter]
    return f"wireshark -r {shlex.quote(file)} -Y {shlex.quote(' && '.join(filter(None, both)))}"


def base_name(path: str) -> str:
    """Return the last part of a path."""
    return path.rstrip("/").rsplit("/", 1)[-1] or path


def ended(incident: Incident, report: Report) -> str:
    """Say how long the incident lasted, or that it was still there."""
    end = incident.end_ns if incident.end_ns is not None else report.span_ns[1]
    lasted = quantity(max(0, end - incident.onset_ns) / 1e9, "s")
    return f"{lasted}, over" if incident.end_ns is not None else f"{lasted}, still there at the end"


def victims(incident: Incident, shown: int = 8) -> list[tuple[str, str]]:
    """Return names and effect, those with one effect together."""
    by_effect: dict[str, list[str]] = defaultdict(list)
    for victim in incident.victims[:shown]:
        by_effect[victim.effect].append(short_name(victim.name, victim.id))
    rows = [(", ".join(names), effect) for effect, names in by_effect.items()]
    more = len(incident.victims) - shown
    return [*rows, (f"{more} more", "")] if more > 0 else rows


def next_command(report: Report, html: str | None) -> str:
    """Return the command that helps most now."""
    paths = shell_paths([i.path for i in report.inputs])
    if report.incidents and html is None:
        return f"skewscope diagnose {paths} --html report.html"
    if report.incidents:
        code = report.incidents[0].condition
        return f"skewscope explain {code}" if code != UNKNOWN else f"skewscope inspect {paths}"
    return f"skewscope inspect {paths}"


def shell_paths(paths: Sequence[str]) -> str:
    """Return the paths as typed in a shell: all, or their common folder where they are many."""
    if len(paths) > 1:
        folders = {str(PurePath(p).parent) for p in paths}
        if len(folders) == 1:
            folder = folders.pop()
            return "." if folder == "." else shlex.quote(clean(folder) + "/")
    return " ".join(shlex.quote(clean(p)) for p in paths[:3]) + (" ..." if len(paths) > 3 else "")
