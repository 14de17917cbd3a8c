"""`skewscope act plan`: what would be done about a report, why, and what would be sent."""

from __future__ import annotations

import json
from pathlib import Path

import click

from skewscope.app.commands.act import _shared


@click.command(
    short_help="Say what would be done, and send nothing.",
    epilog="""\b
Examples:
  skewscope act plan report.json --config act.toml
  skewscope diagnose captures/ --json | skewscope act plan - --json""",
)
@_shared.REPORT
@_shared.CONFIG
@_shared.JSON
def command(report: Path, config: Path, as_json: bool) -> None:
    """Say what would be done about a REPORT of `diagnose --json`, why, and what would be sent.

    Nothing is sent; routers are asked for their present state. The report is judged as of its own end,
    so that a recorded one can be planned as well.
    """
    from skewscope.act import runner
    from skewscope.app import acting

    with _shared.one_line_errors():
        made, news = acting.setup(config), acting.report(report)
        ledger = acting.look(made)
    planned, notes = runner.plan(made.settings, made.actuators, ledger, news, news.last_ns)
    if as_json:
        click.echo(json.dumps(acting.plan_json(planned, notes), indent=2, ensure_ascii=False))
        return
    for line in [*notes, *acting.plan_lines(planned)] or [
        "nothing to do: the report has no incident with a culprit"
    ]:
        click.echo(line)
