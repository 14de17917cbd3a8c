"""`skewscope lab import-testbed`: recordings in the older form become cases."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from skewscope.app.commands._run import NO_INPUT, say


@click.command(
    short_help="Convert recordings in the older form to cases.",
    epilog="""\b
Example:
  skewscope lab import-testbed samples/testbed -o cases""",
)
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "-o", "--output", "target", required=True, type=click.Path(path_type=Path), help="Folder for the cases."
)
def command(source: Path, target: Path) -> None:
    """Convert the recordings below SOURCE (truth.json each, one expected.toml) to case folders.

    Captures are copied byte by byte; a case that is there already is left as it is.
    """
    from skewscope.lab.import_testbed import RecordingError, convert

    try:
        names = convert(source, target)
    except RecordingError as error:
        say(str(error))
        sys.exit(NO_INPUT)
    click.echo(f"{len(names)} cases in {target}")
