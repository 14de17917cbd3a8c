"""`skewscope explain`: one runbook entry."""

from __future__ import annotations

import click


@click.command(
    short_help="Print one runbook entry.",
    epilog="""\b
Examples:
  skewscope explain c20
  skewscope explain tp_straggler
  skewscope explain --list""",
)
@click.argument("condition", required=False)
@click.option("--list", "list_all", is_flag=True, help="List all conditions.")
def command(condition: str | None, list_all: bool) -> None:
    """Print the runbook entry of a CONDITION (c20, 20 or tp_straggler).

    Without a condition all are listed.
    """
    from skewscope.app import catalog
    from skewscope.app.render import runbook

    if list_all or condition is None:
        runbook.print_conditions()
        return
    entry = catalog.find(condition)
    if entry is None:
        raise click.UsageError(f"no condition {condition!r}; see `skewscope explain --list`")
    runbook.print_entry(entry)
