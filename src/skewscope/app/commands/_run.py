"""What every command that reads inputs shares: paths, progress, interrupts, exit status."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:  # `--help` must not pay for these
    from types import FrameType

    from skewscope.app.inputs import Expanded
    from skewscope.core.report import Incident, Input, Report

OK, PARTIAL, USAGE, NO_INPUT, INTERRUPTED = 0, 1, 2, 3, 130
PROGRESS_FROM_BYTES = 4_000_000
UNREADABLE = "unreadable"


def say(message: str) -> None:
    """Print one line on stderr."""
    click.echo(f"skewscope: {message}", err=True)


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Turn the first Ctrl-C into a flag, so that a partial report can be made; the second kills."""
    hit = False

    def on_interrupt(signum: int, frame: FrameType | None) -> None:
        nonlocal hit
        if hit:
            raise KeyboardInterrupt
        hit = True
        say("interrupted; finishing with what was read so far (Ctrl-C again to give up)")

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield lambda: hit
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def progress_bar(total_bytes: int, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """Show a progress bar on stderr where that is a terminal and the input is not small."""
    if quiet or total_bytes < PROGRESS_FROM_BYTES or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("reading"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=total_bytes)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def tell_first_run() -> None:
    """Say on stderr why the first run after an installation takes long."""
    from skewscope.app import warm

    if warm.is_first_run():
        say("first run: compiling, about half a minute of one core; this happens once")


def unreadable(report: Report) -> list[Input]:
    """Return the inputs that gave nothing because they could not be read."""
    return [i for i in report.inputs if i.kind == UNREADABLE]


def first_sign(incident: Incident, share: float, *, named: bool) -> None:
    """Say on stderr that something was found, while the rest is still being read."""
    from skewscope.app.render import wording
    from skewscope.app.render.units import percent, utc

    who = f": {wording.suspect(incident.culprits[0])}" if named and incident.culprits else ""
    what = f"{utc(incident.detected_ns)} {wording.condition(incident)}{who}"
    say(f"{what} (first sign, may change; reading on, {percent(share)} read)")


def read(
    paths: Sequence[str],
    quiet: bool = False,
    first: Callable[[Incident, float], None] | None = None,
    check_icrc: bool = False,
    explain: bool = False,
) -> tuple[Report, int]:
    """Run the pipeline over what the user named; return the report and the exit status.

    first: told of the first incident as soon as it is found; `check_icrc`, `explain`: see `pipeline.run`.

    Complaints go to stderr, one line per path. Ends the program with status 3 where nothing
    could be read.
    """
    from skewscope.app.inputs import expand

    found = expand(paths)
    for problem in found.problems:
        say(problem)
    if not found.files:
        raise SystemExit(NO_INPUT)
    report, interrupted = _pipeline(found, quiet, first, check_icrc, explain)
    bad = unreadable(report)
    for one in bad:
        say(f"{one.path}: {'; '.join(one.notes) or 'not a capture that skewscope can read'}")
    if len(bad) == len(report.inputs) and not interrupted:
        raise SystemExit(NO_INPUT)
    if interrupted or report.interrupted:
        return report, INTERRUPTED
    return report, PARTIAL if bad or found.problems else OK


def _pipeline(
    found: Expanded,
    quiet: bool,
    first: Callable[[Incident, float], None] | None,
    check_icrc: bool,
    explain: bool,
) -> tuple[Report, bool]:
    with interruptible() as stopped, progress_bar(found.bytes_total, quiet) as progress:
        from skewscope.app import pipeline  # slow to import: an interrupt must find its handler

        tell_first_run()
        report = pipeline.run(
            found.files,
            progress=progress,
            stop=stopped,
            first=first,
            check_icrc=check_icrc,
            explain=explain,
        )
        return report, stopped()
