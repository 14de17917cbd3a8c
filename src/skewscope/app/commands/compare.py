"""`skewscope compare`: two sets of captures side by side."""

from __future__ import annotations

import click

from skewscope.app.commands import _run

WITH = "--with"


class TwoSets(click.Command):
    """Accepts several paths after `--with`, as a shell makes them of `--with slow/*.pcap`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat `--with` before every path that follows it, then parse as usual."""
        return super().parse_args(ctx, spread(args))


def spread(args: list[str]) -> list[str]:
    """Return the arguments with `--with` repeated before each path up to the next option."""
    out: list[str] = []
    following = False
    for arg in args:
        if arg == WITH:
            following = True
        elif arg.startswith("-"):
            following = False
            out.append(arg)
        else:
            out.extend([WITH, arg] if following else [arg])
    return out


@click.command(
    cls=TwoSets,
    short_help="Rank what differs between healthy and slow captures.",
    epilog="""\b
Examples:
  skewscope compare monday/ --with tuesday/
  skewscope compare healthy/*.pcap.gz --with slow/*.pcap.gz --json

\b
Exit status: 0 done; 1 some input was unreadable; 2 wrong usage;
3 no readable input; 130 interrupted.""",
)
@click.argument("healthy", nargs=-1, type=click.Path())
@click.option(
    WITH,
    "slow",
    multiple=True,
    type=click.Path(),
    metavar="SLOW...",
    help="The captures to compare with the healthy ones.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
@click.option("--top", default=15, show_default=True, type=click.IntRange(1), help="Rows to print.")
def command(healthy: tuple[str, ...], slow: tuple[str, ...], as_json: bool, top: int) -> None:
    """Put two sets of captures side by side and rank what changed.

    Each feature is summarised by median and 95th percentile; the change is ranked by its size
    relative to the spread of the HEALTHY set. Hosts are matched by address, else by role.
    """
    if not healthy or not slow:
        raise click.UsageError("two sets are needed: skewscope compare HEALTHY... --with SLOW...")
    before, first = _run.read(healthy)
    after, second = _run.read(slow)
    from skewscope.app import compare
    from skewscope.app.render import comparison

    result = compare.compare(before, after)
    if as_json:
        click.echo(comparison.dumps(result))
    else:
        comparison.print_comparison(result, top)
    raise SystemExit(max(first, second))
