"""`skewscope demo`: recorded faults through the whole product."""

from __future__ import annotations

from pathlib import Path

import click

from skewscope.app.commands import _run


@click.command(
    short_help="Explain a recorded fault: no root, no network.",
    epilog="""\b
Examples:
  skewscope demo
  skewscope demo --list
  skewscope demo --only NAME --out pages

\b
Exit status: 0 done; 2 wrong usage; 3 no recordings are installed.""",
)
@click.option(
    "--out",
    default="skewscope-demo",
    show_default=True,
    type=click.Path(path_type=Path),
    help="Folder for the HTML pages.",
)
@click.option("--only", multiple=True, metavar="NAME", help="Play this recording only (repeatable).")
@click.option("--list", "list_all", is_flag=True, help="List the recordings.")
def command(out: Path, only: tuple[str, ...], list_all: bool) -> None:
    """Run the real pipeline on recorded faults and write an HTML page for each.

    Needs no root, no GPU and no network, and ends by itself.
    """
    from skewscope.app import demo

    found = demo.recordings()
    if list_all:
        for one in found:
            click.echo(one.name)
        return
    if only:
        unknown = set(only) - {r.name for r in found}
        if unknown:
            raise click.UsageError(f"no recording {', '.join(sorted(unknown))}; see `skewscope demo --list`")
        found = [r for r in found if r.name in only]
    if not found:
        _run.say("no recordings are installed")
        raise SystemExit(_run.NO_INPUT)
    from skewscope.app.render import terminal

    _run.tell_first_run()
    screen = terminal.console()
    for shown in demo.play(found, out):
        screen.rule(f"recording {shown.recording.name}", align="left", characters="=")
        terminal.print_report(shown.report, html=str(shown.page), out=screen)
        screen.print()
