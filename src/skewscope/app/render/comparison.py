"""A comparison as a table and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict

from rich.console import Console
from rich.table import Table
from rich.text import Text

from skewscope.app.compare import Change, Comparison
from skewscope.app.render.json import plain
from skewscope.app.render.terminal import console
from skewscope.app.render.units import digits, factor, quantity
from skewscope.app.render.wording import clean

NOTABLE = 3.0
"""Changes under so many healthy spreads are called noise in the first line."""


def dumps(result: Comparison) -> str:
    """Return the comparison as JSON text."""
    out = {"schema": "skewscope.comparison/1", **asdict(result)}
    return json.dumps(plain(out), indent=2, allow_nan=False, ensure_ascii=False)


def _headline(result: Comparison) -> str:
    if not result.changes:
        return "Nothing to compare: the two sets share no feature."
    first = result.changes[0]
    if abs(first.effect) < NOTABLE:
        return f"No notable change: the largest is {digits(abs(first.effect), 2)} healthy spreads."
    before, after = _pair(first)
    times = factor(before, after)
    return (
        f"Changed most: {first.name} of {first.scope} {first.key}, {first.at} "
        f"{quantity(before, first.unit)} → {quantity(after, first.unit)}" + (f" ({times})." if times else ".")
    )


def _pair(change: Change) -> tuple[float, float]:
    if change.at == "median":
        return change.healthy.median, change.slow.median
    return change.healthy.p95, change.slow.p95


def print_comparison(result: Comparison, top: int = 15, out: Console | None = None) -> None:
    """Print the ranked table, largest change first."""
    out = out or console()
    out.print(Text(clean(_headline(result)), style="bold"))
    for note in result.notes:
        out.print(Text(clean(note), style="dim"))
    if not result.changes:
        return
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("feature", overflow="fold")
    table.add_column("of", overflow="fold")
    table.add_column("", no_wrap=True)
    for heading in ("healthy", "slow", "change", "spreads"):
        table.add_column(heading, justify="right", no_wrap=True)
    for change in result.changes[:top]:
        before, after = _pair(change)
        table.add_row(
            clean(change.name),
            clean(change.key if change.key == change.other_key else f"{change.key} ~ {change.other_key}"),
            change.at,
            quantity(before, change.unit),
            quantity(after, change.unit),
            factor(before, after),
            f"{change.effect:+.0f}",
        )
    out.print()
    out.print(table)
    more = len(result.changes) - top
    if more > 0:
        out.print(Text(f"{more} more with --top {len(result.changes)} or --json", style="dim"))
