"""`skewscope act undo`: take one action back now."""

from __future__ import annotations

from pathlib import Path

import click

from skewscope.app.commands import _run
from skewscope.app.commands.act import _shared


@click.command(
    short_help="Take one action back now.",
    epilog="""\b
Example:
  skewscope act undo a1b2c3d4e5 --config act.toml""",
)
@click.argument("action_id", metavar="ID")
@_shared.CONFIG
def command(action_id: str, config: Path) -> None:
    """Take the action with this ID back now; `skewscope act status` lists ids.

    What somebody else has changed since is left as it is.
    """
    from skewscope.act.runner import Runner
    from skewscope.app import acting

    with _shared.one_line_errors():
        made = acting.setup(config)
        with acting.open_journal(made) as journal:
            if action_id not in journal.ledger.actions:
                _run.say(f"{action_id}: no such action; see `skewscope act status`")
                raise SystemExit(_run.USAGE)
            said = Runner(made.settings, made.actuators, journal).undo(
                action_id, acting.now_ns(), _shared.person()
            )
            click.echo(said)
            if journal.ledger.actions[action_id].in_force:
                raise SystemExit(1)
