"""`skewscope act status`: what is on record of all actions."""

from __future__ import annotations

import json
from pathlib import Path

import click

from skewscope.app.commands.act import _shared


@click.command(
    short_help="List actions: proposed, in force, ended.",
    epilog="""\b
Examples:
  skewscope act status --config act.toml
  skewscope act status --json | jq '.[] | select(.in_force)'""",
)
@_shared.CONFIG
@_shared.JSON
def command(config: Path, as_json: bool) -> None:
    """List every action on record with its reason, newest last."""
    from skewscope.app import acting

    with _shared.one_line_errors():
        ledger = acting.look(acting.setup(config))
    actions = sorted(ledger.actions.values(), key=lambda a: (a.decided_ns, a.id))
    if as_json:
        click.echo(json.dumps([acting.action_json(a) for a in actions], indent=2, ensure_ascii=False))
        return
    for action in actions:
        click.echo(acting.action_line(action, acting.now_ns()))
    if not actions:
        click.echo("no actions on record")
