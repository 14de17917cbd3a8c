"""Runbook entries on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from skewscope.app.catalog import full_name
from skewscope.app.render.terminal import console
from skewscope.app.render.units import percent
from skewscope.conditions.loader import load_entries
from skewscope.core.entry import CauseRule, Entry

LISTS = "-*0123456789"


WHERE = {
    "same": "at the same scope",
    "host": "on the same host",
    "group": "in the same group",
    "any": "anywhere in the cluster",
}
"""How an edge says where it holds."""


def print_conditions(out: Console | None = None) -> None:
    """Print one line per condition."""
    out = out or console()
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for heading in ("no", "condition", "scope", "title"):
        table.add_column(heading, no_wrap=heading != "title")
    for entry in load_entries().values():
        table.add_row(entry.id, entry.slug, entry.scope, entry.title)
    if table.row_count:
        out.print(table)
    else:
        out.print("No conditions are installed.")


def _block(out: Console, heading: str, text: str) -> None:
    out.print(Text(f"\n{heading}", style="bold"))
    for paragraph in text.strip().split("\n\n"):
        keep = "\n" in paragraph and paragraph.lstrip()[:1] in LISTS
        body = paragraph if keep else " ".join(paragraph.split())
        out.print(Padding(Text(body), (0, 0, 0, 2)))


def _rows(out: Console, heading: str, rows: Sequence[tuple[str, str]]) -> None:
    if rows:
        out.print(Text(f"\n{heading}", style="bold"))
    for name, text in rows:
        line = f"{name}: {text}" if text else name
        out.print(Padding(Text(line), (0, 0, 0, 2)))


def _cause(rule: CauseRule, total: float) -> tuple[str, str]:
    when = f", if {rule.when.name} {rule.when.op} {rule.when.value:g}" if rule.when else ""
    return rule.cause, f"prior {percent(rule.weight / total)}{when}"


def print_entry(entry: Entry, out: Console | None = None) -> None:
    """Print one runbook entry: what it means, how it is decided, what to do."""
    out = out or console()
    out.print(Text(f"{entry.id} {entry.slug}: {entry.title}", style="bold"))
    facts = f"{entry.status}, severity {entry.severity}, {entry.plane}, judged per {entry.scope}"
    out.print(Text(facts, style="dim"))
    for name, text in entry.texts.items():
        _block(out, name.capitalize(), text)
    _rows(out, "Told apart from", [(full_name(code), why) for code, why in entry.separates.items()])
    _rows(out, "Needs these features", list(entry.needs.items()))
    thresholds = [
        (f"{name} = {t.value:g} {t.unit}".removesuffix(" 1"), t.why)
        for name, t in entry.params.thresholds.items()
    ]
    _rows(out, "Thresholds", thresholds)
    total = sum(rule.weight for rule in entry.causes) or 1.0
    _rows(out, "Causes that are weighed", [_cause(rule, total) for rule in entry.causes])
    _rows(out, "Explains away", [(full_name(h.condition), WHERE[h.where]) for h in entry.hides])
    actions = [
        (f"{a.text} ({a.risk} risk, {'reversible' if a.reversible else 'not reversible'})", a.verify)
        for a in entry.actions
    ]
    _rows(out, "First actions", actions)
    _rows(out, "Known false positives", [(text, "") for text in entry.false_positives])
    _rows(out, "References", [(text, "") for text in entry.references])
