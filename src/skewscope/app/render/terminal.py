"""The report on a terminal: readable at 80 columns, without colour, and through a pipe."""

from __future__ import annotations

from typing import IO

from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from skewscope.app import catalog
from skewscope.app.render import wording
from skewscope.app.render.units import offset, percent, quantity, utc
from skewscope.core.report import Incident, Report

MAX_EVIDENCE, MAX_CULPRITS = 12, 3


def console(file: IO[str] | None = None, width: int | None = None) -> Console:
    """Return a console that neither guesses markup nor highlights, 80 columns wide in a pipe."""
    made = Console(file=file, width=width, markup=False, highlight=False, emoji=False)
    if width is None and not made.is_terminal:
        made.width = 80 if "COLUMNS" not in made._environ else made.width
    return made


def grid(*columns: dict[str, object]) -> Table:
    """Return a table without lines, indented by two."""
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for column in columns:
        table.add_column(**column)  # type: ignore[arg-type]
    return table


def print_report(
    report: Report, *, quiet: bool = False, html: str | None = None, out: Console | None = None
) -> None:
    """Print the whole report, or with `quiet` one line per incident."""
    out = out or console()
    if quiet:
        _print_quiet(report, out)
        return
    style = "bold red" if report.incidents else "bold green"
    out.print(Text(wording.headline(report), style=style))
    for note in report.notes:
        out.print(Text(wording.clean(note), style="dim"))
    if report.interrupted:
        out.print(Text("Interrupted: this report covers only what was read until then.", style="yellow"))
    for number, incident in enumerate(report.incidents, 1):
        out.print()
        print_incident(incident, report, out, number)
    out.print()
    out.print(Text(f"Seen: {wording.coverage(report)}"))
    missing = wording.not_judged(report)
    if missing:
        out.print(Text(missing, style="dim"))
    if html:
        out.print(Text(f"Page: {html}"), soft_wrap=True)
    out.print(Text(f"Next: {wording.next_command(report, html)}"), soft_wrap=True)


def _print_quiet(report: Report, out: Console) -> None:
    lines = [f"{wording.condition(i)}: {wording.sentence(i)}" for i in report.incidents]
    for line in lines or [wording.headline(report)]:
        out.print(Text(line), soft_wrap=True)


def print_incident(incident: Incident, report: Report, out: Console, number: int = 1) -> None:
    """Print one incident as a block of labelled parts."""
    name = wording.condition(incident)
    also = f"  also {', '.join(incident.also)}" if incident.also else ""
    title = f"{number} of {len(report.incidents)}  {name}  {percent(incident.score)}{also}"
    out.print(Rule(Text(title, style="bold"), align="left", style="dim", characters="-"))
    if number > 1:
        out.print(Text(wording.sentence(incident)))
    out.print(_overview(incident, report))
    if incident.evidence:
        out.print(Text("\nEvidence", style="bold"))
        out.print(Padding(_evidence(incident), (0, 0, 0, 2)))
    _print_lists(incident, report, out)


def _overview(incident: Incident, report: Report) -> Table:
    table = grid({"style": "bold", "no_wrap": True}, {"overflow": "fold"})
    began = f"{utc(incident.onset_ns)} UTC ({offset(incident.onset_ns, report.span_ns[0])})"
    table.add_row("When", f"{began}, {wording.ended(incident, report)}")
    delay = (incident.detected_ns - incident.onset_ns) / 1e9
    if delay > 0:
        table.add_row("Decided", f"{quantity(delay, 's')} after it began")
    culprits = [
        f"{percent(c.probability):>5}  {wording.suspect(c)}" for c in incident.culprits[:MAX_CULPRITS]
    ]
    table.add_row("Culprit", wording.clean("\n".join(culprits)) or "not determined")
    causes = [f"{percent(c.probability):>5}  {c.cause}" for c in incident.causes]
    table.add_row("Cause", "\n".join(causes) or "not determined")
    rows = wording.impact_rows(incident.impact)
    width = max((len(label) for label, _ in rows), default=0)
    table.add_row(
        "Cost", "\n".join(f"{a:<{width}}  {b}" for a, b in rows) or "no effect on requests seen from here"
    )
    if incident.victims:
        table.add_row("Victims", _victims(incident))
    return table


def _victims(incident: Incident) -> str:
    rows = wording.victims(incident)
    return wording.clean("\n".join(f"{names}: {effect}" if effect else names for names, effect in rows))


def _evidence(incident: Incident) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    table.add_column("feature", overflow="fold")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("healthy", justify="right", no_wrap=True)
    table.add_column("file:frame", overflow="fold", style="dim")
    for one in incident.evidence[:MAX_EVIDENCE]:
        baseline = "" if one.baseline is None else quantity(one.baseline, one.unit)
        table.add_row(wording.clean(one.name), quantity(one.value, one.unit), baseline, wording.traces(one))
    more = len(incident.evidence) - MAX_EVIDENCE
    if more > 0:
        table.add_row(f"and {more} more in --json", "", "", "")
    return table


def _print_lists(incident: Incident, report: Report, out: Console) -> None:
    origin = report.span_ns[0]
    ruled = [(catalog.full_name(r.condition), r.why) for r in incident.ruled_out]
    marks = [(offset(m.ts_ns, origin), m.text) for m in sorted(incident.timeline, key=lambda m: m.ts_ns)]
    _print_pairs("Ruled out", ruled, out)
    _print_pairs("Cannot be told apart from here", [("-", text) for text in incident.cannot_tell], out)
    _print_pairs("Timeline", marks, out)
    if incident.actions:
        first = incident.actions[0]
        undo = "reversible" if first.reversible else "not reversible"
        out.print(Text("\nDo first", style="bold"))
        out.print(Padding(Text(wording.clean(f"{first.text} ({first.risk} risk, {undo}).")), (0, 0, 0, 2)))
        if first.verify:
            out.print(Padding(Text(wording.clean(f"It worked if: {first.verify}")), (0, 0, 0, 2)))


def _print_pairs(heading: str, pairs: list[tuple[str, str]], out: Console) -> None:
    if not pairs:
        return
    out.print(Text(f"\n{heading}", style="bold"))
    longest = max(len(a) for a, _ in pairs)
    if longest > 14:  # long names: one above the other, so that 80 columns do
        for a, b in pairs:
            out.print(Padding(Text(wording.clean(f"{a}: {b}")), (0, 0, 0, 2)))
        return
    table = grid({"no_wrap": True}, {"overflow": "fold"})
    for a, b in pairs:
        table.add_row(wording.clean(a), wording.clean(b))
    out.print(Padding(table, (0, 0, 0, 2)))
