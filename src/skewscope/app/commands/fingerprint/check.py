"""`skewscope fingerprint check`: the enrolled class that a collection comes from, if any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from skewscope.app.commands._run import say

DIFFERENT, USAGE = 1, 2
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    short_help="Say which enrolled class answers, or that none does.",
    epilog="""\b
Examples:
  skewscope fingerprint check known.json suspect.jsonl
  skewscope fingerprint check known.json suspect.jsonl --claim h100 --json

\b
Exit status: 0 an enrolled class (with --claim: the claimed one); 1 not so, or
undecided; 2 wrong usage.""",
)
@click.argument("known", type=FILE)
@click.argument("suspect", type=FILE)
@click.option("--claim", help="The class, or a member of it, that the platform is said to be.")
@click.option(
    "--error-rate",
    default=1e-4,
    show_default=True,
    type=click.FloatRange(1e-9, 0.4),
    help="Accepted share of wrong refusals and of wrong acceptances.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON.")
def command(known: Path, suspect: Path, claim: str | None, error_rate: float, as_json: bool) -> None:
    """Compare a collection with every enrolled class, probe after probe, until it is accepted or refused."""
    from skewscope.app.fingerprinting import report
    from skewscope.app.fingerprinting.recorder import load
    from skewscope.fingerprint import enrolment, grid, verdict
    from skewscope.fingerprint.collection import CollectionError

    try:
        groups, decimals = enrolment.loads(known.read_text(encoding="utf-8", errors="replace"))
        asked = load(suspect)
    except (CollectionError, OSError) as error:
        say(str(error))
        raise SystemExit(USAGE) from None
    found = verdict.check(
        asked, groups, verdict.rates_of(groups, decimals), decimals=decimals, error_rate=error_rate
    )
    claimed = claim_row(found, claim)
    if claim and claimed is None:
        raise click.UsageError(f"no enrolled class {claim!r} answered these probes")
    lies_on = grid.grid_of(asked.logprobs, asked.logits)
    if as_json:
        click.echo(report.verdict_json(asked, found, lies_on, claimed))
    else:
        report.print_verdict(asked, found, lies_on, claimed)
    right = claimed["outcome"] == "accepted" if claimed else found.outcome == "match"
    raise SystemExit(0 if right else DIFFERENT)


def claim_row(found: Any, claim: str | None) -> dict[str, Any] | None:
    """Return the test of the claimed class; None where nothing is claimed or nothing fits."""
    for row in found.classes:
        if claim in (row.name, *row.members):
            return {"class": claim, "outcome": row.outcome, "probes_used": row.probes_used}
    return None
