"""`skewscope act apply`: act on a report, and stay to take everything back in time."""

from __future__ import annotations

import signal
from pathlib import Path

import click

from skewscope.app.commands import _run
from skewscope.app.commands.act import _shared


@click.command(
    short_help="Act on a report, and take it back in time.",
    epilog="""\b
Examples:
  skewscope act apply report.json --config act.toml
  skewscope act apply report.json --approve all
  skewscope act apply report.json --approve a1b2c3d4e5 --no-wait""",
)
@_shared.REPORT
@_shared.CONFIG
@click.option(
    "--approve",
    "approved",
    multiple=True,
    metavar="ID",
    help="Send this proposal too; `all` sends every one.",
)
@click.option("--no-wait", is_flag=True, help="Return at once; `skewscope act tick` must then take back.")
@click.option(
    "--every",
    "every_s",
    type=click.FloatRange(0.05, 60),
    default=1.0,
    show_default=True,
    metavar="S",
    help="Seconds between two looks while it waits.",
)
def command(report: Path, config: Path, approved: tuple[str, ...], no_wait: bool, every_s: float) -> None:
    """Decide about a REPORT, send what may be sent, and stay until everything was taken back.

    While it stays, the effect is judged whenever REPORT is rewritten with newer data; what did not help
    is taken back. Ctrl-C or SIGTERM takes everything back at once.
    """
    from skewscope.act.runner import Runner
    from skewscope.app import acting

    with _shared.one_line_errors():
        made, news = acting.setup(config), acting.report(report)
        with acting.open_journal(made) as journal:
            runner = Runner(made.settings, made.actuators, journal)
            for line in runner.start(acting.now_ns()):
                click.echo(line)
            planned, done = runner.apply(news, acting.now_ns(), approved, _shared.person())
            for line in [*acting.plan_lines(planned), *done]:
                click.echo(line)
        if no_wait:
            return
        # A service manager ends a process with SIGTERM: take back then as well.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            acting.hold(made, None if str(report) == "-" else report, every_s, click.echo)
        except KeyboardInterrupt:
            acting.give_up(made, _shared.person(), click.echo)
            raise SystemExit(_run.INTERRUPTED) from None
