"""Judge recorded cases of the live test bed and write a page: what was found, by variant and level of noise.

Usage: python -m tools.score_bed FOLDER ... [--page FILE]
A folder is searched for cases (truth.toml beside taps/). Without --page the tables go to standard output.
Exit code 3: no case.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import skewscope
from skewscope.app.api import diagnose
from skewscope.app.smoke import effect_of
from skewscope.lab.bed.truth import Truth, read
from skewscope.lab.judge import Verdict, judge
from tools.score_testbed import least_share, machine, most_events

HEAD = ("case", "noise", "busy", "effect", "expected", "found", "decided after", "verdict")
MOST_FOUND = 3
"""Incidents of a row that are spelled out; the others are counted."""


@dataclass
class Scored:
    """A case, its truth and what its report was worth."""

    name: str
    truth: Truth
    verdict: Verdict
    exposure_s: float

    @property
    def variant(self) -> str:
        """Which variant of its scenario the case is."""
        return str(self.truth.bed.get("variant", "?"))

    @property
    def noise(self) -> str:
        """Level of the engine's noise."""
        return "vllm" if "vllm" in self.name else str(self.truth.bed.get("noise", "?"))

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table."""
        fault = self.truth.faults[0] if self.truth.faults else None
        incidents = self.verdict.found.split("; ")
        found = "; ".join(incidents[:MOST_FOUND])
        more = len(incidents) - MOST_FOUND
        alarms = [f"false alarm {a.split()[0]}" for a in self.verdict.false_alarms]
        return (
            self.name,
            self.noise,
            f"{self.truth.machine_busy_ratio:.0%}",
            effect_of(self.truth),
            f"{fault.condition} {fault.culprit_id}" if fault else "nothing",
            found + (f"; {more} more" if more > 0 else ""),
            f"{self.verdict.delay_s:.2f} s" if self.verdict.delay_s > 0 else "-",
            "right" if self.verdict.right else "; ".join((*self.verdict.broken, *alarms)),
        )


def score(folders: list[Path], show: Callable[[str], None]) -> Iterator[Scored]:
    """Diagnose and judge the cases below the folders, in order of names."""
    cases = {p.parent for folder in folders for p in folder.rglob("truth.toml")}
    for case in sorted(cases, key=lambda c: (c.name, str(c))):
        truth = read((case / "truth.toml").read_text(encoding="utf-8"))
        report = diagnose([case / "taps"])
        seen_s = (report.span_ns[1] - report.span_ns[0]) / 1e9
        one = Scored(case.name, truth, judge(report, truth), seen_s)
        show("  ".join(one.cells()))
        yield one


def groups(rows: list[Scored]) -> dict[tuple[str, str], list[Scored]]:
    """Return the rows by variant and noise, in a fixed order."""
    out: dict[tuple[str, str], list[Scored]] = {}
    order = {"faulty": 0, "near_miss": 1, "healthy": 2, "low": 0, "mid": 1, "high": 2}
    for row in sorted(rows, key=lambda r: (order.get(r.variant, 9), order.get(r.noise, 9), r.name)):
        out.setdefault((row.variant, row.noise), []).append(row)
    return out


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    return "".join("| " + " | ".join(r) + " |\n" for r in (head, ("---",) * len(head), *rows))


def totals(rows: list[Scored]) -> str:
    """Return the table of totals."""
    out = []
    for (variant, noise), some in groups(rows).items():
        right = sum(r.verdict.right for r in some)
        named = sum(not any(b.startswith(("condition", "nothing")) for b in r.verdict.broken) for r in some)
        alarms, seen_s = sum(len(r.verdict.false_alarms) for r in some), sum(r.exposure_s for r in some)
        out.append(
            (
                variant,
                noise,
                str(len(some)),
                f"{right} ({least_share(right, len(some)):.2f})",
                str(named) if some[0].truth.faults else "-",
                str(alarms),
                f"{seen_s:.0f} s ({3600 * most_events(alarms) / seen_s:.0f}/h)",
            )
        )
    head = ("variant", "noise", "cases", "right (95 % at least)", "condition right", "false alarms",
            "traffic (95 % at most)")  # fmt: skip
    return table(head, out)


def page(rows: list[Scored], day: str) -> str:
    """Return the whole page."""
    parts = [
        f"""# The live test bed: every scenario, near misses, levels of noise

<!-- Written by `python -m tools.score_bed`. Edits are lost. -->

**Data: recorded from real processes on the test bed**, one seed a case. Not production traffic. One seed a
scenario tells what is found and what is not; it is no rate.

- Date: {day}. skewscope {skewscope.__version__}.
- Machine: {machine()}. *busy*: how busy it was during the recording, the bed's own work included. Runs in
  which others took the bed's time are not here: the bed repeats and then refuses them.
- Commands: `make recordings`, `make bed`, `skewscope lab bed smoke --variant near_miss`, each with `--noise`;
  then `python -m tools.score_bed FOLDER ... --page docs/results/bed_live.md`.

{totals(rows)}
*right*: condition, first culprit, first cause and onset are right, and nothing false was said
(docs/bed.md, Judging). Conditions that skewscope does not know yet are recorded all the same, and missed.
""",
    ]
    for (variant, noise), some in groups(rows).items():
        parts.append(
            f"## {variant.replace('_', ' ')}, noise {noise}\n\n{table(HEAD, [r.cells() for r in some])}"
        )
    return "\n".join(parts)


def main(arguments: list[str] | None = None) -> int:
    """Score the cases and print or write the page."""
    parser = argparse.ArgumentParser(prog="python -m tools.score_bed", description="Judge recorded cases.")
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--page", type=Path, help="write the page to this file")
    asked = parser.parse_args(arguments)
    rows = list(score(asked.folders, print))
    if not rows:
        print("no case")
        return 3
    print(totals(rows), end="")
    if asked.page:
        asked.page.write_text(page(rows, datetime.now(UTC).date().isoformat()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
