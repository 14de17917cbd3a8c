"""`skewscope diagnose`: captures in, incidents out."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from skewscope.app.commands import _run


@click.command(
    short_help="Explain a slowdown from captures.",
    epilog="""\b
Examples:
  skewscope diagnose capture.pcap.gz
  skewscope diagnose captures/ 'more/*.pcap' --html report.html
  skewscope diagnose captures/ counters/ metrics/
  skewscope diagnose captures/ --json | jq '.incidents[0].culprits'

\b
Exit status: 0 done, with or without incidents; 1 some input was unreadable
but a report was made; 2 wrong usage; 3 no readable input; 130 interrupted
(the partial report is still printed).""",
)
@click.argument("paths", nargs=-1, type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON (see `skewscope schema`).")
@click.option(
    "--html",
    "html",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write one self-contained HTML page.",
)
@click.option("--redact", is_flag=True, help="Replace addresses, host and file names consistently.")
@click.option("-q", "--quiet", is_flag=True, help="Print the verdict only, one line per incident.")
def command(paths: tuple[str, ...], as_json: bool, html: Path | None, redact: bool, quiet: bool) -> None:
    """Explain a slowdown from captures: culprit, cause, cost and evidence.

    PATHS are captures, counters, metrics and logs (files, folders or globs); the current folder if
    none is given. Give those of all hosts of one incident together: each one adds what it alone can
    see, and all are joined by their time.
    """
    if html is not None and not html.parent.is_dir():
        _run.say(f"{html}: no such folder")
        raise SystemExit(_run.USAGE)
    first = None if quiet else partial(_run.first_sign, named=not redact)
    report, status = _run.read(paths or (".",), quiet=quiet, first=first)
    if redact:
        from skewscope.app.redact import redacted

        report = redacted(report)
    if html is not None:
        from skewscope.app.render import html as page

        try:
            html.write_text(page.render(report), encoding="utf-8")
        except OSError as error:
            _run.say(f"{html}: {error.strerror or error}")
            raise SystemExit(_run.USAGE) from None
    if as_json:
        from skewscope.app.render import json

        click.echo(json.dumps(report))
    else:
        from skewscope.app.render import terminal

        terminal.print_report(report, quiet=quiet, html=str(html) if html else None)
    raise SystemExit(status)
