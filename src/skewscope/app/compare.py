"""Two reports side by side: per feature, what changed, relative to the healthy spread."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from skewscope.core.report import HostRole, Report, Series
from skewscope.core.tables import Array

MIN_VALUES = 3
"""Fewer known values than this on either side: no statement."""
SPREAD_FLOOR = 0.02
"""The spread is at least this share of the healthy median: a constant must not divide by zero."""
SCALE = 1.4826
"""Median absolute deviation to standard deviation of a normal distribution."""
_ADDRESS = re.compile(r"[0-9A-Fa-f:.]*[.:][0-9A-Fa-f:.]*[0-9A-Fa-f]")


@dataclass
class Summary:
    """A feature of one scope over one set."""

    median: float
    p95: float
    spread: float
    count: int


@dataclass
class Change:
    """One feature in both sets; `effect` is the change in units of the healthy spread."""

    scope: str
    key: str
    other_key: str
    name: str
    unit: str
    healthy: Summary
    slow: Summary
    effect: float
    at: str


@dataclass
class Comparison:
    """The ranked changes, and what could not be compared."""

    changes: list[Change] = field(default_factory=list)
    matched: dict[str, str] = field(default_factory=dict)
    by_role: list[str] = field(default_factory=list)
    only_healthy: list[str] = field(default_factory=list)
    only_slow: list[str] = field(default_factory=list)
    not_compared: int = 0
    notes: list[str] = field(default_factory=list)


def summarise(series: Series) -> Summary | None:
    """Return median, 95th percentile and robust spread, or None where too little is known."""
    raw = [v for v in series.values if v is not None]
    values: Array = np.asarray(raw, dtype=np.float64)
    values = values[np.isfinite(values)]
    if len(values) < MIN_VALUES:
        return None
    median = float(np.median(values))
    mad = SCALE * float(np.median(np.abs(values - median)))
    tail = float(np.percentile(values, 95))
    return Summary(median, tail, mad, len(values))


def match_hosts(healthy: list[HostRole], slow: list[HostRole]) -> tuple[dict[str, str], list[str]]:
    """Map addresses of the healthy set to those of the slow one: equal address, else equal role.

    Returns the map and a line for each match that rests on the role alone.
    """
    there = {h.address for h in slow}
    matched = {h.address: h.address for h in healthy if h.address in there}
    by_role: list[str] = []
    free: dict[str, list[HostRole]] = defaultdict(list)
    for host in slow:
        if host.address not in matched:
            free[_role(host)].append(host)
    for host in healthy:
        candidates = free.get(_role(host), [])
        if host.address in matched or not candidates:
            continue
        same_name = [c for c in candidates if c.name == host.name]
        other = (same_name or candidates)[0]
        candidates.remove(other)
        matched[host.address] = other.address
        by_role.append(f"{host.address} ~ {other.address} ({_role(host)})")
    return matched, by_role


def _role(host: HostRole) -> str:
    return "+".join(sorted(host.roles)) or "host"


def _translate(key: str, matched: dict[str, str]) -> str:
    if key in matched:
        return matched[key]

    def one(match: re.Match[str]) -> str:
        text = match[0]
        head, _, port = text.rpartition(":")
        if text in matched:
            return matched[text]
        return f"{matched[head]}:{port}" if head in matched else text

    return _ADDRESS.sub(one, key)


def _groups(healthy: Report, slow: Report, matched: dict[str, str]) -> dict[str, str]:
    there = {frozenset(g.members): g.id for g in slow.groups}
    out = {}
    for group in healthy.groups:
        members = frozenset(matched.get(m, m) for m in group.members)
        if members in there:
            out[group.id] = there[members]
    return out


def compare(healthy: Report, slow: Report) -> Comparison:
    """Compare two reports feature by feature and rank what changed."""
    matched, by_role = match_hosts(healthy.hosts, slow.hosts)
    groups = _groups(healthy, slow, matched)
    there = {(s.scope, s.key, s.name): s for s in slow.series}
    out = Comparison(matched=matched, by_role=by_role)
    targets = set(matched.values())
    out.only_healthy = [h.address for h in healthy.hosts if h.address not in matched]
    out.only_slow = [h.address for h in slow.hosts if h.address not in targets]
    for series in healthy.series:
        key = _translate(series.key, matched)
        if series.scope == "group":  # a group's id may look like an address
            key = groups.get(series.key, key)
        other = there.get((series.scope, key, series.name))
        before = summarise(series)
        after = summarise(other) if other else None
        if other is None or before is None or after is None:
            out.not_compared += 1
            continue
        effect, at = _effect(before, after)
        out.changes.append(
            Change(series.scope, series.key, other.key, series.name, series.unit, before, after, effect, at)
        )
    out.changes.sort(key=lambda c: (-abs(c.effect), c.scope, c.key, c.name))
    out.notes = _notes(out, healthy, slow)
    return out


def _effect(before: Summary, after: Summary) -> tuple[float, str]:
    """Return the larger change of median and 95th percentile, in healthy spreads, and which it was."""
    scale = max(before.spread, SPREAD_FLOOR * abs(before.median), abs(before.p95 - before.median) / 2)
    if scale == 0:
        scale = max(abs(after.median), abs(after.p95)) or 1.0
    median = (after.median - before.median) / scale
    tail = (after.p95 - before.p95) / scale
    return (median, "median") if abs(median) >= abs(tail) else (tail, "p95")


def _notes(out: Comparison, healthy: Report, slow: Report) -> list[str]:
    notes = []
    if out.by_role:
        notes.append(f"Matched by role, not by address: {', '.join(out.by_role)}.")
    if out.only_healthy:
        notes.append(f"Only in the healthy set: {', '.join(out.only_healthy)}.")
    if out.only_slow:
        notes.append(f"Only in the slow set: {', '.join(out.only_slow)}.")
    if out.not_compared:
        notes.append(f"Not compared, too little known on one side: {out.not_compared} series.")
    if healthy.incidents:
        names = ", ".join(i.condition for i in healthy.incidents)
        notes.append(f"The healthy set is not healthy: {names} held in it.")
    if not slow.incidents:
        notes.append("No condition held in the slow set: the changes below may be within normal life.")
    return notes
