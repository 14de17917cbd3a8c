"""`skewscope inspect`: what captures contain and what cannot be seen from them."""

from __future__ import annotations

import click

from skewscope.app.commands import _run


@click.command(
    short_help="Say what captures contain.",
    epilog="""\b
Examples:
  skewscope inspect capture.pcap.gz
  skewscope inspect captures/ --json
  skewscope inspect --icrc roce.pcap

\b
Exit status: 0 done; 1 some input was unreadable; 2 wrong usage;
3 no readable input; 130 interrupted.""",
)
@click.argument("paths", nargs=-1, type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.option("--icrc", is_flag=True, help="Check the invariant CRC of RoCE frames: right, wrong, cut off.")
@click.option("--redact", is_flag=True, help="Replace addresses, host and file names consistently.")
def command(paths: tuple[str, ...], as_json: bool, icrc: bool, redact: bool) -> None:
    """Say what captures contain: hosts, roles, groups, clocks, gaps, and what they cannot show.

    PATHS are capture files, folders or globs; the current folder if none is given.
    """
    report, status = _run.read(paths or (".",), check_icrc=icrc)
    if redact:
        from skewscope.app.redact import redacted

        report = redacted(report)
    from skewscope.app.render import contents

    if as_json:
        click.echo(contents.dumps(report))
    else:
        contents.print_contents(report)
    raise SystemExit(status)
