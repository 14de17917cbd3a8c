"""`skewscope lab`: try, test and compare; the modules of this folder are its commands."""

from __future__ import annotations

import click

from skewscope.app.command_folder import CommandFolder


class LabCommands(CommandFolder):
    """The lab's commands: the modules of this folder."""

    package = "skewscope.app.commands.lab"


@click.group(
    cls=LabCommands,
    short_help="Make and judge labelled recordings of faults.",
    epilog="""\b
Examples:
  skewscope lab bed list
  sudo skewscope lab bed record c20 --seed 7 -o case""",
)
def command() -> None:
    """Make labelled recordings of real and converted faults, and judge what skewscope says of them."""
