"""`skewscope fingerprint watch`: which replicas of a pool left their class."""

from __future__ import annotations

from pathlib import Path

import click

from skewscope.app.commands._run import say

LEFT, USAGE = 1, 2
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    short_help="Follow replicas and say which one left its class.",
    epilog="""\b
Examples:
  skewscope fingerprint watch known.json --expect h100 one.jsonl two.jsonl
  skewscope fingerprint watch known.json --expect h100 pool/*.jsonl --json

\b
Exit status: 0 all in class; 1 one left it, or cannot be told; 2 wrong usage.""",
)
@click.argument("known", type=FILE)
@click.argument("replicas", nargs=-1, required=True, type=FILE)
@click.option("--expect", required=True, help="The class, or a member of it, that all replicas should be in.")
@click.option("--json", "as_json", is_flag=True, help="Print the states as JSON.")
def command(known: Path, replicas: tuple[Path, ...], expect: str, as_json: bool) -> None:
    """Read the collections of a pool's replicas and report condition c51 (drift) or c41 (wrong by itself)."""
    from skewscope.app.fingerprinting import report
    from skewscope.app.fingerprinting.recorder import load
    from skewscope.fingerprint import enrolment, verdict, watching
    from skewscope.fingerprint.collection import CollectionError

    try:
        groups, decimals = enrolment.loads(known.read_text(encoding="utf-8", errors="replace"))
        rates = verdict.rates_of(groups, decimals)
        rows = [watching.watch(load(path), expect, groups, rates, decimals) for path in replicas]
    except KeyError:
        raise click.UsageError(f"no enrolled class {expect!r}") from None
    except (CollectionError, OSError) as error:
        say(str(error))
        raise SystemExit(USAGE) from None
    if as_json:
        click.echo(report.watched_json(rows))
    else:
        report.print_watched(rows)
    raise SystemExit(0 if all(r.state == watching.IN_CLASS for r in rows) else LEFT)
