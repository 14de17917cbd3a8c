"""`skewscope fingerprint enroll`: make known classes of recorded platforms."""

from __future__ import annotations

from pathlib import Path

import click

from skewscope.app.commands._run import say

USAGE = 2
FILES = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    short_help="Group recorded platforms into classes and keep them.",
    epilog="""\b
Examples:
  skewscope fingerprint enroll h100.jsonl a100.jsonl -o known.json
  skewscope fingerprint enroll --decimals 3 *.jsonl -o known.json""",
)
@click.argument("collections", nargs=-1, required=True, type=FILES)
@click.option(
    "-o", "--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="File to write."
)
@click.option("--decimals", type=click.IntRange(0, 7), help="Round log-probabilities, as some endpoints do.")
def command(collections: tuple[Path, ...], out: Path, decimals: int | None) -> None:
    """Group collections whose common answers are bit-equal; measure each class with itself and the others."""
    from skewscope.app.fingerprinting import report
    from skewscope.app.fingerprinting.recorder import load
    from skewscope.fingerprint import classes, enrolment, verdict
    from skewscope.fingerprint.collection import CollectionError

    try:
        read = [load(path) for path in collections]
    except (CollectionError, OSError) as error:
        say(str(error))
        raise SystemExit(USAGE) from None
    empty = [c.name for c in read if not len(c)]
    if empty:
        say(f"no answers in {', '.join(empty)}")
        raise SystemExit(USAGE)
    groups = classes.classify(read, decimals)
    out.write_text(enrolment.dumps(groups, decimals), encoding="utf-8")
    report.enrolled(groups, verdict.rates_of(groups, decimals), decimals)
