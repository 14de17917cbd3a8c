"""`skewscope fingerprint borders`: probes for interfaces that give tokens only."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click

from skewscope.app.commands._run import say

NEITHER, USAGE = 1, 2
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    short_help="Make biased probes that two platforms answer differently.",
    epilog="""\b
Examples:
  skewscope fingerprint borders a.jsonl b.jsonl -o borders.json
  skewscope fingerprint collect --url http://host:8000 --model m --token-ids \\
      --probe-file borders.json -o suspect.jsonl
  skewscope fingerprint borders a.jsonl b.jsonl --judge suspect.jsonl

\b
Exit status: 0 done, or one of the two; 1 neither, or no border found;
2 wrong usage.""",
)
@click.argument("one", type=FILE)
@click.argument("other", type=FILE)
@click.option("-o", "--out", type=click.Path(dir_okay=False, path_type=Path), help="File of probes to write.")
@click.option("--judge", type=FILE, help="Answers to these probes: say which of the two gave them.")
@click.option("--most", default=64, show_default=True, type=click.IntRange(1), help="Number of probes.")
def command(one: Path, other: Path, out: Path | None, judge: Path | None, most: int) -> None:
    """Tie the two best tokens of each prompt half-way between two platforms, by a bias on the second.

    Both collections must hold log-probabilities of the same prompts. Only the answered tokens of the
    biased probes are looked at, so the suspect needs to give no log-probabilities.
    """
    from skewscope.app.fingerprinting.recorder import load
    from skewscope.fingerprint import borders
    from skewscope.fingerprint.probes import from_json

    if (out is None) == (judge is None):
        raise click.UsageError("name either --out or --judge")
    try:
        a, b = load(one), load(other)
        prompts = [from_json(row) for row in a.provenance["probes"].get("items", [])]
        suspect = load(judge) if judge else None
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        say(str(error))
        raise SystemExit(USAGE) from None
    found = borders.borders(a, b, prompts, most=most)
    say(f"{len(found)} border probes between {a.name} and {b.name}")
    if out:
        rows = {"probes": [x.probe.as_json() for x in found]}
        out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        raise SystemExit(0 if found else NEITHER)
    assert suspect is not None
    chosen = {key[0]: int(t) for key, t in zip(suspect.keys, suspect.chosen, strict=True) if key[1] >= 0}
    result = borders.judge(found, chosen)
    names = {"a": a.name, "b": b.name}
    click.echo(json.dumps(asdict(result) | {"platform": names.get(result.side, "")}))
    raise SystemExit(0 if result.side in names else NEITHER)
