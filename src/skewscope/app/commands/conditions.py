"""`skewscope conditions`: the runbook's table of contents."""

from __future__ import annotations

import click


@click.command(
    short_help="List every condition skewscope recognises.",
    epilog="""\b
Example:
  skewscope conditions""",
)
def command() -> None:
    """List every condition that skewscope recognises."""
    from skewscope.app.render import runbook

    runbook.print_conditions()
