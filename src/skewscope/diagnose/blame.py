"""Ranked culprits and causes of one condition's findings."""

from __future__ import annotations

from collections.abc import Sequence

from skewscope.core.entry import Entry
from skewscope.core.report import Cause, Culprit, Finding
from skewscope.diagnose.context import Context, host_of, hosts_of

SHARPNESS = 6.0
"""Exponent that turns scores into shares: a finding with 0.9 against one with 0.6 takes nine tenths."""

TIE = 0.97
"""Two ends of one link whose scores differ by less than this ratio are not told apart: the link is
named in their place."""

MAX_CULPRITS = 4

MOST_CERTAIN = 0.98
"""Probability that all suspects in view share: the culprit may be out of view."""


def culprits(entry: Entry, findings: Sequence[Finding], context: Context) -> list[Culprit]:
    """Return the suspects of findings of one condition, most probable first.

    Their probabilities are shares of 1; those of suspects beyond MAX_CULPRITS are not given to others.
    """
    score: dict[str, float] = {}
    for finding in findings:
        host = _accused(entry, finding, context)
        score[host] = max(score.get(host, 0.0), finding.score)
    share = {host: s**SHARPNESS for host, s in score.items()}
    # What is left over is for a suspect that nobody saw.
    total = (sum(share.values()) or 1.0) / MOST_CERTAIN
    ranked = sorted(((p / total, host) for host, p in share.items()), key=lambda x: (-x[0], x[1]))
    named = [Culprit(entry.culprit_kind, _id(entry, h), _name(entry, h, context), p) for p, h in ranked]
    tie = _tied_link(entry, ranked, score, context)
    return [tie, *named[2 : MAX_CULPRITS + 1]] if tie else named[:MAX_CULPRITS]


def _accused(entry: Entry, finding: Finding, context: Context) -> str:
    ends = hosts_of(finding.key)
    if entry.culprit_key == "to":
        return ends[-1]
    if entry.culprit_key == "from":
        return ends[0]
    if entry.culprit_kind == "endpoint":
        return finding.key
    return ends[0]


def _id(entry: Entry, host: str) -> str:
    if entry.culprit_kind == "link":
        return f"{host}->fabric"
    return host_of(host)


def _name(entry: Entry, host: str, context: Context) -> str:
    place = host_of(host)
    name = context.name(place)
    if entry.culprit_kind == "rank":
        return f"rank on {name}"
    if entry.culprit_kind == "link":
        return f"link of {name}"
    if entry.culprit_kind == "endpoint":
        return f"engine at {host}" + (f" on {context.names[place]}" if place in context.names else "")
    return f"{entry.culprit_kind} {name}"


def _tied_link(
    entry: Entry, ranked: Sequence[tuple[float, str]], score: dict[str, float], context: Context
) -> Culprit | None:
    if entry.culprit_kind != "link" or len(ranked) < 2:
        return None
    (p, a), (q, b) = ranked[:2]
    talk = (a, b) in context.links or (b, a) in context.links
    if not talk or score[b] < TIE * score[a]:
        return None
    name = f"link between {context.name(a)} and {context.name(b)}"
    return Culprit("link", f"{a}->{b}", name, p + q)


def causes(entry: Entry, finding: Finding) -> list[Cause]:
    """Return the entry's candidate causes under this evidence, most probable first."""
    evidence = {e.name: e.value for e in finding.evidence}
    weight: dict[str, float] = {}
    for rule in entry.causes:
        if rule.when is None or rule.when.holds(evidence):
            weight[rule.cause] = max(weight.get(rule.cause, 0.0), rule.weight)
    total = sum(weight.values())
    if not total:
        return [Cause("unknown", 1.0)]
    return sorted((Cause(c, w / total) for c, w in weight.items()), key=lambda c: (-c.probability, c.cause))
