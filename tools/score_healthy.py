"""Sum up a ledger of healthy and control traffic of the test bed: exposure, false alarms, their bound.

Usage: python -m tools.score_healthy LEDGER [--page FILE]
Prints a table, or writes the page. Exit code 1: a ledger that cannot be read; 3: no exposure in it.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

from skewscope.app.healthy import Piece, read_ledger
from tools.score_testbed import machine, most_events

HOUR_S = 3600.0
ASKED_H = 6.0

HEAD = """\
# Healthy and control traffic: a ledger of findings

**Data: recorded from real processes on the test bed.** Made by `make bed-healthy`, a line per piece in
[healthy_ledger.tsv](healthy_ledger.tsv); a later run adds to it. A *healthy* piece has no injection; in a
*control* something changes for 40 % of the time (a near miss of a scenario) and nothing is wrong. Scenarios
and levels of noise take turns, each piece with a seed of its own. Several groups in one piece count as one
exposure. A false alarm is an incident that the control does not declare as its company. The bound is the
upper end of the two-sided 95 % interval of a Poisson count, over the exposure.
"""


def events(piece: Piece) -> int:
    """Return how many false alarms a piece had."""
    return len(piece.false_alarms.split("; ")) if piece.false_alarms else 0


def row(name: str, pieces: list[Piece]) -> str:
    """Return a row of the table: pieces, hours, false alarms, pieces with one, rate and bound per hour."""
    hours = sum(p.exposure_s for p in pieces) / HOUR_S
    count = sum(map(events, pieces))
    if not hours:
        return f"| {name} | {len(pieces)} | 0.00 | - | - | - | - |"
    some = sum(events(p) > 0 for p in pieces)
    return (
        f"| {name} | {len(pieces)} | {hours:.2f} | {count} | {some} | {count / hours:.2f} | "
        f"{most_events(count) / hours:.2f} |"
    )


def table(pieces: list[Piece]) -> list[str]:
    """Return the lines of the table."""
    lines = [
        "| traffic | pieces | hours | false alarms | pieces with one | per hour | 95 % bound |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [row(k, [p for p in pieces if p.kind == k]) for k in ("healthy", "control")]
    lines += [row(f"noise {n}", [p for p in pieces if p.noise == n]) for n in ("low", "mid", "high")]
    return [*lines, row("**all**", pieces)]


def alarms(pieces: list[Piece]) -> list[str]:
    """Return a line for each piece with a false alarm."""
    lines = ["| case | noise | machine busy | what was said |", "| --- | --- | --- | --- |"]
    for p in pieces:
        if p.false_alarms:
            said = Counter(a.split()[0] for a in p.false_alarms.split("; "))
            text = ", ".join(f"{k} x{n}" if n > 1 else k for k, n in said.items())
            lines.append(f"| {p.case} | {p.noise} | {p.busy_ratio:.0%} | {text} |")
    return lines


def page(pieces: list[Piece]) -> str:
    """Return the page."""
    used = [p for p in pieces if not p.not_used]
    hours = sum(p.exposure_s for p in used) / HOUR_S
    state = "reached" if hours >= ASKED_H else "not shown"
    busy = sorted(p.busy_ratio for p in used)
    rules = Counter(p.rules for p in used)
    told = (
        f"{hours:.2f} h so far; {ASKED_H:g} h were asked for: {state}. {len(pieces) - len(used)} pieces were "
        f"not used, because others took the bed's time. The machine ({machine()}) was {busy[0]:.0%} to "
        f"{busy[-1]:.0%} busy, half of the pieces above {busy[len(busy) // 2]:.0%}. First piece "
        f"{used[0].utc}, last {used[-1].utc}. Texts of the rules (checksums, pieces): "
        f"{', '.join(f'{k} ({n})' for k, n in rules.items())}.\n"
    )
    parts = [HEAD, told, "\n".join(table(used)) + "\n"]
    if any(p.false_alarms for p in used):
        parts.append("\n".join(alarms(used)) + "\n")
    return "\n".join(parts)


def main(arguments: list[str] | None = None) -> int:
    """Print the table or write the page."""
    parser = argparse.ArgumentParser(prog="python -m tools.score_healthy", description="Sum up a ledger.")
    parser.add_argument("ledger", type=Path)
    parser.add_argument("--page", type=Path, help="write this page instead of printing")
    asked = parser.parse_args(arguments)
    try:
        pieces = read_ledger(asked.ledger)
    except ValueError as error:
        print(error)
        return 1
    if not any(p.exposure_s for p in pieces):
        print(f"{asked.ledger}: no exposure")
        return 3
    if asked.page:
        asked.page.write_text(page(pieces), encoding="utf-8")
    else:
        print(*table([p for p in pieces if not p.not_used]), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
