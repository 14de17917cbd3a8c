"""`skewscope fingerprint`: which platform answers; the modules of this folder are its commands."""

from __future__ import annotations

import click

from skewscope.app.command_folder import CommandFolder


class FingerprintCommands(CommandFolder):
    """The commands of this folder."""

    package = "skewscope.app.commands.fingerprint"


@click.group(
    cls=FingerprintCommands,
    short_help="Tell which platform really answers, and whether its numbers drifted.",
    epilog="""\b
Examples:
  skewscope fingerprint collect --url http://engine:8000 --model m -o a.jsonl
  skewscope fingerprint enroll a.jsonl b.jsonl -o known.json
  skewscope fingerprint check known.json suspect.jsonl""",
)
def command() -> None:
    """Recognise hardware, precision and kernels of a replica by the last bits of its answers."""
