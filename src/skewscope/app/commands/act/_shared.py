"""What the commands of `skewscope act` share on the command line."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from skewscope.app.commands import _run

CONFIG = click.option(
    "--config",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("act.toml"),
    show_default=True,
    metavar="FILE",
    help="What may be done, where and when (docs/act.md).",
)
REPORT = click.argument("report", type=click.Path(dir_okay=False, path_type=Path))
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@contextmanager
def one_line_errors() -> Iterator[None]:
    """End with one line and status 2 where act.toml, a report or the journal cannot be used."""
    from skewscope.act.journal import JournalError
    from skewscope.app.acting import ActError

    try:
        yield
    except (ActError, JournalError) as error:
        _run.say(str(error))
        raise SystemExit(_run.USAGE) from None


def person() -> str:
    """Return who is acting, for the audit log."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""
