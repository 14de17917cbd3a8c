"""The command line: one module per command under `app/commands`, loaded when needed."""

from __future__ import annotations

import sys

import click

from skewscope import __version__
from skewscope.app.command_folder import CommandFolder

EPILOG = """\b
Examples:
  skewscope diagnose capture.pcap.gz
  skewscope diagnose captures/ --html report.html
  skewscope demo

\b
Exit status: 0 done, with or without incidents; 1 some input was unreadable
but a report was made; 2 wrong usage; 3 no readable input; 130 interrupted
(the partial report is still printed)."""


class Commands(CommandFolder):
    """The product's commands: the modules of `app/commands`."""

    def invoke(self, ctx: click.Context) -> object:
        """Run the command; an interrupt that no command took ends it with status 130."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise SystemExit(130) from None


@click.group(cls=Commands, epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="skewscope")
def main() -> None:
    """Say which part of a multi-GPU inference service is slow, why, and what it costs.

    skewscope reads packet captures of a serving cluster (one per host, or a single one) and names
    the culprit, the cause, the cost and the evidence. It needs no configuration and no root.
    """


if __name__ == "__main__":
    sys.exit(main())
