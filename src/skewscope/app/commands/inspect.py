"""`skewscope inspect`: what inputs contain and what cannot be seen from them."""

from __future__ import annotations

import click

from skewscope.app.commands import _run


@click.command(
    short_help="Say what captures, counters, metrics and logs contain.",
    epilog="""\b
Examples:
  skewscope inspect capture.pcap.gz
  skewscope inspect captures/ --json
  skewscope inspect --icrc roce.pcap
  skewscope inspect vllm.prom counters/

\b
Exit status: 0 done; 1 some input was unreadable; 2 wrong usage;
3 no readable input; 130 interrupted.""",
)
@click.argument("paths", nargs=-1, type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print as JSON.")
@click.option("--icrc", is_flag=True, help="Check the invariant CRC of RoCE frames: right, wrong, cut off.")
@click.option("--redact", is_flag=True, help="Replace addresses, host and file names consistently.")
def command(paths: tuple[str, ...], as_json: bool, icrc: bool, redact: bool) -> None:
    """Say what inputs contain, and what they cannot show.

    Of captures: hosts, roles, groups, clocks, gaps. Of counters, metrics and logs: what they are about,
    the last value of each series under its canonical name, and names that are not known. PATHS are files,
    folders or globs; the current folder if none is given.
    """
    report, status = _run.read(paths or (".",), check_icrc=icrc, explain=True)
    if redact:
        from skewscope.app.redact import redacted

        report = redacted(report)
    from skewscope.app.render import contents

    if as_json:
        click.echo(contents.dumps(report))
    else:
        contents.print_contents(report)
    raise SystemExit(status)
