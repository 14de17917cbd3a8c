"""Findings to incidents: cluster, explain away, blame, cost, tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skewscope.core.entry import Entry
from skewscope.core.report import Action, Cause, Culprit, Finding, Incident, RuledOut, TimelineMark, Victim
from skewscope.diagnose.blame import causes, culprits
from skewscope.diagnose.context import Context, hosts_of
from skewscope.diagnose.impact import impact
from skewscope.diagnose.relate import clusters, leaders

MAX_ALSO = 2
MAX_VICTIMS = 16
SURE = 0.8


def diagnose(findings: Sequence[Finding], entries: Mapping[str, Entry], context: Context) -> list[Incident]:
    """Return incidents, worst first: by probability times tokens per second lost, then by score."""
    incidents: list[Incident] = []
    for cluster in clusters(findings, context):
        lead, explained = leaders(cluster, entries, context)
        for condition in dict.fromkeys(f.condition for f in lead):
            mine = [f for f in lead if f.condition == condition]
            effects = [f for leader in mine for f in explained[id(leader)]]
            incidents.append(_incident(entries, mine, effects, context))
    incidents.sort(key=lambda i: (-i.score * (i.impact.tokens_per_s_lost or 0.0), -i.score, i.onset_ns))
    _number_twins(incidents)
    return incidents


def _number_twins(incidents: Sequence[Incident]) -> None:
    """Make ids unique: one condition may begin at two places in the same millisecond."""
    seen: dict[str, int] = {}
    for incident in incidents:
        seen[incident.id] = count = seen.get(incident.id, 0) + 1
        if count > 1:
            incident.id = f"{incident.id}-{count}"


def _incident(
    entries: Mapping[str, Entry], mine: Sequence[Finding], effects: Sequence[Finding], context: Context
) -> Incident:
    entry = entries[mine[0].condition]
    # Members of one condition that lie behind the leader by an edge to itself are suspects as well.
    peers = [f for f in effects if f.condition == entry.id]
    rest = [f for f in effects if f.condition != entry.id]
    accused = culprits(entry, [*mine, *peers], context)
    top = max(mine, key=lambda f: f.score)
    onset = min(f.onset_ns for f in mine)
    ends = [f.end_ns for f in mine]
    end = None if any(e is None for e in ends) else max(e for e in ends if e is not None)
    ranked = causes(entry, top)
    hosts = hosts_of(top.key)
    incident = Incident(
        id=f"{entry.id}-{onset // 1_000_000}",
        condition=entry.id,
        title=entry.title,
        score=top.score,
        onset_ns=onset,
        detected_ns=min(f.detected_ns for f in mine),
        end_ns=end,
        culprits=accused,
        causes=ranked,
        also=_also(entry, rest),
        victims=_victims(hosts, context),
        impact=impact(context, hosts, onset, end),
        evidence=top.evidence,
        actions=[Action(a.id, a.text, a.risk, a.reversible, a.verify) for a in entry.actions],
        ruled_out=_ruled_out(entry, entries, [*mine, *effects]),
        timeline=_timeline(entries, mine, effects, end),
        cannot_tell=_cannot_tell(accused, ranked),
        findings=[*mine, *effects],
    )
    incident.summary = _summary(entry, incident)
    return incident


def _also(entry: Entry, effects: Sequence[Finding]) -> list[str]:
    declared = {h.condition for h in entry.hides}
    best: dict[str, float] = {}
    for f in effects:
        if f.condition in declared:
            best[f.condition] = max(best.get(f.condition, 0.0), f.score)
    return sorted(best, key=lambda c: (-best[c], c))[:MAX_ALSO]


def _victims(hosts: Sequence[str], context: Context) -> list[Victim]:
    out = []
    for group in dict.fromkeys(g for h in hosts if (g := context.group_of(h)) is not None):
        for member in context.groups[group]:
            if member not in hosts:
                out.append(Victim("rank", member, context.name(member), "waits in every round"))
        for endpoint, served in context.endpoint_groups.items():
            if served == group:
                out.append(Victim("endpoint", endpoint, endpoint, "its streams are late"))
    return out[:MAX_VICTIMS]


def _ruled_out(entry: Entry, entries: Mapping[str, Entry], found: Sequence[Finding]) -> list[RuledOut]:
    present = {f.condition for f in found}
    return [RuledOut(c, why) for c, why in entry.separates.items() if c in entries and c not in present]


def _timeline(
    entries: Mapping[str, Entry], mine: Sequence[Finding], effects: Sequence[Finding], end_ns: int | None
) -> list[TimelineMark]:
    marks = [TimelineMark(min(f.onset_ns for f in mine), "it begins")]
    for f in [*mine, *effects]:
        marks.append(
            TimelineMark(f.detected_ns, f"{f.condition} {entries[f.condition].slug} shown at {f.key}")
        )
    if end_ns is not None:
        marks.append(TimelineMark(end_ns, "last seen"))
    return sorted(marks, key=lambda m: m.ts_ns)


def _cannot_tell(accused: Sequence[Culprit], ranked: Sequence[Cause]) -> list[str]:
    out = []
    if ranked and ranked[0].probability < SURE and len(ranked) > 1:
        names = ", ".join(c.cause for c in ranked)
        out.append(
            f"These sources do not separate the causes {names}; counters or metrics of the culprit would."
        )
    if accused and accused[0].kind == "link" and "->fabric" not in accused[0].id:
        out.append("Only one pair of hosts crosses the link, so its two ends are not told apart.")
    return out


def _summary(entry: Entry, incident: Incident) -> str:
    who = incident.culprits[0].name if incident.culprits else "unknown culprit"
    numbers = []
    for e in incident.evidence[:2]:
        base = f" (usually {_quantity(e.baseline, e.unit)})" if e.baseline is not None else ""
        numbers.append(f"{e.name.removesuffix('_s').replace('_', ' ')} {_quantity(e.value, e.unit)}{base}")
    cause = incident.causes[0].cause if incident.causes else "unknown"
    return (
        f"{who}: {entry.title[0].lower()}{entry.title[1:]}; {', '.join(numbers)}; most likely cause {cause}"
    )


def _quantity(value: float, unit: str) -> str:
    if unit == "s":
        return f"{value * 1e3:.1f} ms" if abs(value) < 1 else f"{value:.2f} s"
    if unit == "1":
        return f"{value:.3g}"
    return f"{value:.3g} {unit}"
