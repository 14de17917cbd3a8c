"""`skewscope act tick`: compare record and world once, and take back what is due."""

from __future__ import annotations

from pathlib import Path

import click

from skewscope.app.commands.act import _shared


@click.command(
    short_help="Take back what is due; for a timer.",
    epilog="""\b
Examples:
  skewscope act tick --config act.toml
  skewscope act tick --report newer.json""",
)
@_shared.CONFIG
@click.option(
    "--report",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A report that began after the actions: their effect is judged by it.",
)
def command(config: Path, report: Path | None) -> None:
    """Compare the record with what is in force, finish what a crash cut short, take back what is due."""
    from skewscope.act.runner import Runner
    from skewscope.app import acting

    with _shared.one_line_errors():
        made = acting.setup(config)
        news = None if report is None else acting.report(report)
        with acting.open_journal(made) as journal:
            runner = Runner(made.settings, made.actuators, journal)
            for line in [*runner.start(acting.now_ns()), *runner.tick(acting.now_ns(), news)]:
                click.echo(line)
