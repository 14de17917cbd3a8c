"""Verdicts on platforms in words and as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from skewscope.fingerprint.classes import Platforms, choose_probes
from skewscope.fingerprint.collection import Collection
from skewscope.fingerprint.compare import Variability
from skewscope.fingerprint.grid import Grid
from skewscope.fingerprint.verdict import Rates, Verdict
from skewscope.fingerprint.watching import Watched

SHOWN = 5
SAYS = {
    "match": "answers as an enrolled class does",
    "none": "answers as none of the enrolled classes does",
    "undecided": "too few probes to tell",
    "no data": "shares no probe with any enrolled class",
}


def enrolled(groups: Sequence[Platforms], rates: Sequence[Rates], decimals: int | None) -> None:
    """Print the classes, how they vary, and how many probes tell them apart."""
    table = Table("class", "members", "equal to itself", "equal to the nearest", box=None, pad_edge=False)
    for group, rate in zip(groups, rates, strict=True):
        own = f"{group.equal}/{group.pairs}" if group.pairs else "not measured"
        table.add_row(group.name, ", ".join(group.members), own, f"{rate.other:.3f}")
    console = Console()
    console.print(table)
    chosen = choose_probes(groups, decimals=decimals)
    steps = ", ".join(f"{n} with {i}" for i, n in enumerate(chosen.separated, 1))
    console.print(f"{len(groups)} classes; told apart by probes: {steps or 'nothing'}")
    if any(not r.measured for r in rates):
        console.print(
            "Classes recorded once: record repetitions (--repeats 2), or noise may look like drift."
        )


def verdict_json(suspect: Collection, verdict: Verdict, grid: Grid, claim: dict[str, Any] | None) -> str:
    """Return the whole verdict as JSON."""
    data = {
        "schema": "skewscope.platform/1",
        "collection": suspect.name,
        "provenance": suspect.provenance,
        "damaged_lines": suspect.damaged,
        "claim": claim,
        "grid": asdict(grid),
        "verdict": asdict(verdict),
    }
    return json.dumps(data, indent=2)


def print_verdict(suspect: Collection, verdict: Verdict, grid: Grid, claim: dict[str, Any] | None) -> None:
    """Print the verdict for a reader in a hurry, then the classes behind it."""
    console = Console()
    best = verdict.classes[0] if verdict.classes else None
    console.print(f"{suspect.name}: {SAYS[verdict.outcome]}", highlight=False)
    if best and verdict.outcome == "match":
        names = ", ".join(best.members)
        console.print(f"class: {names} (probability {best.probability:.4f}, {best.probes_used} probes)")
    elif best:
        console.print(
            f"nearest: {best.name}; probability of no enrolled class {verdict.none_probability:.4f}"
        )
    if claim:
        console.print(f"claim {claim['class']!r}: {claim['outcome']} after {claim['probes_used']} probes")
    console.print(f"itself: {_itself(verdict.variability)}{', UNSTABLE' if verdict.unstable else ''}")
    rounded = f", log-probabilities rounded to {grid.decimals} decimals" if grid.decimals >= 0 else ""
    console.print(f"logits stored as {grid.storage}{f', step {grid.step:g}' if grid.step else ''}{rounded}")
    table = Table("class", "test", "probes", "equal", "distance", "flips", box=None, pad_edge=False)
    for row in verdict.classes[:SHOWN]:
        table.add_row(
            row.name,
            row.outcome,
            str(row.probes_used),
            f"{row.equal:.1%}",
            f"{row.distance:.2g}",
            f"{row.flips:.1%}",
        )
    console.print(table)


def _itself(own: Variability) -> str:
    if not own.measured:
        return "variability not measured (asked once)"
    return f"{own.unequal:.1%} of {own.pairs} repeated positions differ, {own.flips:.1%} in the best token"


def watched_json(rows: Sequence[Watched]) -> str:
    """Return the states of a pool as JSON."""
    return json.dumps({"schema": "skewscope.replicas/1", "replicas": [asdict(r) for r in rows]}, indent=2)


def print_watched(rows: Sequence[Watched]) -> None:
    """Print one line per replica."""
    table = Table("replica", "state", "condition", "left at probe", "looks like", box=None, pad_edge=False)
    for row in rows:
        at = str(row.alarm_probe) if row.alarm_probe >= 0 else "-"
        looks = row.seen if row.verdict.outcome == "match" else "-"
        table.add_row(row.replica, row.state, row.condition or "-", at, looks)
    Console().print(table)
