"""Relations between findings: time, place, and which of them explains which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skewscope.core.entry import Entry
from skewscope.core.report import Finding
from skewscope.diagnose.context import Context, hosts_of

SLACK_NS = 1_500_000_000
"""A cause may be dated this much after its symptom: a persistent condition is dated by its first hit
window, an outcome by its first late answer, and windows of counting are a second wide."""

BREAK_NS = 2_000_000_000
"""Findings further apart than this in time are different incidents."""

WEAK = 0.5
"""A finding explains another only with at least this share of the other's score."""


def clusters(findings: Sequence[Finding], context: Context) -> list[list[Finding]]:
    """Group findings that overlap in time and touch one connected part of the network."""
    component = _components(context)
    groups: list[list[Finding]] = []
    for finding in sorted(findings, key=lambda f: (f.onset_ns, f.condition, f.key)):
        mine = [g for g in groups if any(_together(finding, other, component, context) for other in g)]
        joined = [f for g in mine for f in g] + [finding]
        groups = [g for g in groups if not any(g is m for m in mine)] + [joined]
    return groups


def _together(a: Finding, b: Finding, component: Mapping[str, int], context: Context) -> bool:
    end_a = a.end_ns if a.end_ns is not None else context.last_ns
    end_b = b.end_ns if b.end_ns is not None else context.last_ns
    if a.onset_ns > end_b + BREAK_NS or b.onset_ns > end_a + BREAK_NS:
        return False
    places_a = {component.get(h, -1) for h in hosts_of(a.key)}
    places_b = {component.get(h, -1) for h in hosts_of(b.key)}
    return bool(places_a & places_b)


def _components(context: Context) -> dict[str, int]:
    label: dict[str, int] = {}
    for a, b in context.links:
        la, lb = label.get(a), label.get(b)
        if la is None and lb is None:
            label[a] = label[b] = len(label)
        elif la is None or lb is None:
            known = lb if la is None else la
            assert known is not None
            label[a] = label[b] = known
        elif la != lb:
            for host, value in list(label.items()):
                if value == lb:
                    label[host] = la
    return label


def explains(cause: Finding, effect: Finding, entries: Mapping[str, Entry], context: Context) -> bool:
    """Return whether a declared edge says that `cause` hides `effect`, at this place and time."""
    if cause is effect or effect.onset_ns < cause.onset_ns - SLACK_NS:
        return False
    if cause.score < WEAK * effect.score:
        return False
    for edge in entries[cause.condition].hides:
        if edge.condition == effect.condition and _related(cause, effect, edge.where, context):
            return True
    return False


def _related(a: Finding, b: Finding, where: str, context: Context) -> bool:
    hosts_a, hosts_b = set(hosts_of(a.key)), set(hosts_of(b.key))
    if where == "any":
        return True
    if where == "same":
        return a.key == b.key
    if hosts_a & hosts_b:
        return True
    if where != "group":
        return False
    groups_a = {g for h in hosts_a for g in context.groups_of(h)}
    return any(g in groups_a for h in hosts_b for g in context.groups_of(h))


def leaders(
    findings: Sequence[Finding], entries: Mapping[str, Entry], context: Context
) -> tuple[list[Finding], dict[int, list[Finding]]]:
    """Split a cluster into findings that nothing explains and, per leader, what it explains.

    Returns (leaders, {id(leader): explained findings}). Where some explain each other, the one with
    the higher score leads, then the earlier one: of every circle one is left.
    """
    hidden: dict[int, Finding] = {}
    for effect in findings:
        for cause in findings:
            if not explains(cause, effect, entries, context):
                continue
            back = explains(effect, cause, entries, context)
            if back and _rank(effect) > _rank(cause):
                continue
            best = hidden.get(id(effect))
            if best is None or cause.score > best.score:
                hidden[id(effect)] = cause
    _open_circles(findings, hidden)
    lead = [f for f in findings if id(f) not in hidden]
    explained: dict[int, list[Finding]] = {id(f): [] for f in lead}
    for f in findings:
        top, seen = hidden.get(id(f)), {id(f)}
        while top is not None and id(top) in hidden and id(top) not in seen:
            seen.add(id(top))
            top = hidden[id(top)]
        if top is not None and id(top) in explained:
            explained[id(top)].append(f)
    return lead, explained


def _rank(finding: Finding) -> tuple[float, int, str, str]:
    return finding.score, -finding.onset_ns, finding.condition, finding.key


def _open_circles(findings: Sequence[Finding], hidden: dict[int, Finding]) -> None:
    """Unhide the strongest of findings that explain each other in a circle."""
    for finding in findings:
        path: list[Finding] = []
        here = finding
        while id(here) in hidden and not any(here is p for p in path):
            path.append(here)
            here = hidden[id(here)]
        if id(here) in hidden:
            first = next(i for i, p in enumerate(path) if p is here)
            del hidden[id(max(path[first:], key=_rank))]
