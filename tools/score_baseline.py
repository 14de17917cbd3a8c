"""Judge the recorded faults with little or nothing before the fault, and write a page.

Usage: python -m tools.score_baseline [--page FILE]
Each recording is cut at its front, so that the fault begins 0.4 s after the first packet, or is there from
the first packet on. The recordings are found by SKEWSCOPE_SAMPLES. Exit code 3: no samples.
"""

import argparse
import os
import sys
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import skewscope
from skewscope.app.api import diagnose
from tools import recast, score_testbed, testbed

BASELINES_S = (0.4, -0.05)
"""Time before the injection that is left; less than none: the fault is older than the first packet."""


def judged(root: Path, name: str, baseline_s: float) -> tuple[str, bool]:
    """Return (what was said of a cut recording, whether it is right)."""
    fact = testbed.truth(root, name)
    start_s = fact.onset_s - baseline_s
    fact = replace(fact, onset_s=max(fact.onset_s, start_s))
    with tempfile.TemporaryDirectory() as folder:
        for source in sorted((root / name).glob("*.pcap.gz")):
            recast.rewritten(source, Path(folder) / source.stem, {}, from_ns=int(start_s * 1e9))
        report = diagnose([folder])
    broken = testbed.faults_of(report, fact)
    found = ", ".join(testbed.line(i) for i in report.incidents) or "nothing"
    return found if not broken else f"{found}: **{'; '.join(broken)}**", not broken


def page(rows: list[tuple[str, ...]], right: list[int], day: str) -> str:
    """Return the whole page."""
    head = ("folder", "expected", "0.4 s before the fault", "from the first packet")
    lines = [head, ("---",) * len(head), *rows]
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    bounds = [score_testbed.least_share(n, len(rows)) for n in right]
    return f"""# Short baselines

<!-- Written by `make results`. Edits are lost. -->

**Data: packet captures of this project's own test bed, cut at their front.** Not production traffic.

- Date: {day}. skewscope {skewscope.__version__}.
- Machine: {score_testbed.machine()}.
- Command: `make results`, with `SKEWSCOPE_SAMPLES` set.

- 0.4 s before the fault: **{right[0]} of {len(rows)} right** (95 % lower bound: {bounds[0]:.2f}).
- The fault is there from the first packet: **{right[1]} of {len(rows)} right** ({bounds[1]:.2f}).

{table}

In bold: the rules that the answer breaks, by the same rules as on [testbed.md](testbed.md). Without anything
before the fault a member or a link can only be compared with its peers. What hits all alike, and what is no
larger than an ordinary handicap, cannot be told from what is usual. Faults that are over within moments of
the first packet leave nothing to compare with.
"""


def main(arguments: list[str]) -> int:
    """Score the cut recordings and print or write the page."""
    parser = argparse.ArgumentParser(prog="python -m tools.score_baseline")
    parser.add_argument("--page", type=Path, help="write the page to this file")
    given = parser.parse_args(arguments)
    root = Path(os.environ.get("SKEWSCOPE_SAMPLES", "")) / "testbed"
    if not (root / "expected.toml").is_file():
        print("SKEWSCOPE_SAMPLES names no folder that holds testbed/", file=sys.stderr)
        return 3
    rows, right = [], [0] * len(BASELINES_S)
    for name in sorted(testbed.expected(root)):
        fact = testbed.truth(root, name)
        if not fact.conditions:
            continue
        said = [judged(root, name, b) for b in BASELINES_S]
        right = [n + ok for n, (_, ok) in zip(right, said, strict=True)]
        rows.append((name, " or ".join(fact.conditions), *(text for text, _ in said)))
        print("  ".join(rows[-1]), flush=True)
    print(f"right, of {len(rows)}: {', '.join(map(str, right))}")
    if given.page:
        given.page.write_text(page(rows, right, datetime.now(UTC).date().isoformat()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
