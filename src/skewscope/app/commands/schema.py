"""`skewscope schema`: the JSON Schema of the report."""

from __future__ import annotations

import json

import click


@click.command(
    short_help="Print the JSON Schema of the report.",
    epilog="""\b
Example:
  skewscope schema > report.schema.json""",
)
def command() -> None:
    """Print the JSON Schema of `diagnose --json`."""
    from skewscope.app.render.json import schema

    click.echo(json.dumps(schema(), indent=2, ensure_ascii=False))
