"""`skewscope act`: do something reversible about a report; the modules of this folder are its commands."""

from __future__ import annotations

import click

from skewscope.app.command_folder import CommandFolder


class ActCommands(CommandFolder):
    """The commands that act: the modules of this folder."""

    package = "skewscope.app.commands.act"


@click.group(
    cls=ActCommands,
    short_help="Do something reversible about a report.",
    epilog="""\b
Examples:
  skewscope diagnose captures/ --json > report.json
  skewscope act plan report.json --config act.toml
  skewscope act apply report.json --config act.toml --approve all""",
)
def command() -> None:
    """Do something reversible about a report, through routers, proxies, Kubernetes and engines.

    Everything that may be done, where and when, is in act.toml (docs/act.md). Without one that says
    `mode = "auto"` nothing is sent that a person did not approve.
    """
