"""Judge the recorded faults with little or nothing before the fault, and write a page.

Usage: python -m tools.score_baseline [--page FILE] [--hours 24]
Each recording is cut at its front, so that the fault begins 0.4 s after the first packet, or is there from
the first packet on. The recordings are found by SKEWSCOPE_SAMPLES. Exit code 3: no samples.
With --page a synthetic day of `--hours` is diagnosed as well (tools.long_day); it takes some minutes.
"""

import argparse
import os
import sys
import tempfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

import skewscope
from skewscope.app.api import diagnose
from tools import long_day, recast, score_testbed, testbed

BASELINES_S = (0.4, -0.05)
"""Time before the injection that is left; less than none: the fault is older than the first packet."""


def judged(root: Path, name: str, baseline_s: float) -> tuple[str, bool, str]:
    """Return (what was said of a cut recording, whether it is right, what of the fault is left in it)."""
    fact = testbed.truth(root, name)
    start_s = fact.onset_s - baseline_s
    with tempfile.TemporaryDirectory() as folder:
        for source in sorted((root / name).glob("*.pcap.gz")):
            recast.rewritten(source, Path(folder) / source.stem, {}, from_ns=int(start_s * 1e9))
        left = remains(Path(folder), fact)
        report = diagnose([folder])
    broken = testbed.faults_of(report, replace(fact, onset_s=max(fact.onset_s, start_s)))
    found = ", ".join(testbed.line(i) for i in report.incidents) or "nothing"
    return found if not broken else f"{found}: **{'; '.join(broken)}**", not broken, left


def remains(folder: Path, fact: testbed.Truth) -> str:
    """Return when the first packet comes after the fault began, and how many its culprit then sends."""
    times, sources = [], []
    for path in sorted(folder.glob("*.pcap")):
        data = path.read_bytes()
        at, ts = recast.records(data)
        raw = np.frombuffer(data, dtype=np.uint8)
        times.append(ts)
        sources.append(np.stack([raw[at + 26 + i] for i in range(4)], axis=1))
    ts, source = np.concatenate(times), np.concatenate(sources)
    culprit = np.array([int(part) for part in fact.culprit.split(".")], dtype=np.uint8)
    sent = (source == culprit).all(axis=1) & (ts <= fact.end_s * 1e9)
    return f"{ts.min() / 1e9 - fact.onset_s:.2f} s, {np.count_nonzero(sent)}"


def page(rows: list[tuple[str, ...]], right: list[int], date: str, day: long_day.Day | None) -> str:
    """Return the whole page."""
    head = ("folder", "expected", "0.4 s before the fault", "from the first packet", "first packet, sent")
    lines = [head, ("---",) * len(head), *rows]
    told = "\n".join(long_day.lines(day)) if day else "- Not run for this page (`--hours 0`)."
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    bounds = [score_testbed.least_share(n, len(rows)) for n in right]
    return f"""# Short and long baselines

<!-- Written by `make results`. Edits are lost. -->

**Data: packet captures of this project's own test bed, cut at their front, and one synthetic day.** Not
production traffic.

- Date: {date}. skewscope {skewscope.__version__}.
- Machine: {score_testbed.machine()}.
- Command: `make results`, with `SKEWSCOPE_SAMPLES` set.

## Short

- 0.4 s before the fault: **{right[0]} of {len(rows)} right** (95 % lower bound: {bounds[0]:.2f}).
- The fault is there from the first packet: **{right[1]} of {len(rows)} right** ({bounds[1]:.2f}).

{table}

In bold: the rules that the answer breaks, by the same rules as on [testbed.md](testbed.md). The last column
belongs to the captures cut to begin with the fault: when their first packet comes after the fault began, and
how many packets the culprit sends while it lasts, copies at both taps counted.

Without anything before the fault a member, a link or a backend can only be compared with its peers. Not told
apart:

- `rank_crash`: the dead rank sends nothing any more, and the ends of its connections lie before the cut. What
  is left are other ranks that close theirs; no round of the group is ever seen.
- `vllm_sigstop`: one stop of 0.3 s. The first packet of the cut capture is the first one after it.
- `noisy_neighbor`: a rank that is irregular by a quarter of a round. Other recordings of the test bed show
  as much before anything was done to them.
- `long_prefill`: long prompts from the first packet on are the workload, until a time without them was seen.
- `sigstop_pulses` is named, but dated by its second stop in view: before the first the length of a round is
  not known.

## A day

Synthetic: every hour four clients ask for some seconds, nothing is sent in between, and the group keeps its
connections. Command: `python -m tools.long_day`.

{told}

The process had made the captures before it read them, so memory that it reuses hides growth below that.
Times without packets cost nothing: after 10 s of silence event time jumps to the next packet, as it does
live. A day of traffic without gaps was not run.
"""


def main(arguments: list[str]) -> int:
    """Score the cut recordings and print or write the page."""
    parser = argparse.ArgumentParser(prog="python -m tools.score_baseline")
    parser.add_argument("--page", type=Path, help="write the page to this file")
    parser.add_argument(
        "--hours", type=int, default=24, help="length of the synthetic day on the page; 0: none"
    )
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
        right = [n + ok for n, (_, ok, _) in zip(right, said, strict=True)]
        rows.append((name, " or ".join(fact.conditions), *(text for text, _, _ in said), said[-1][2]))
        print("  ".join(rows[-1]), flush=True)
    print(f"right, of {len(rows)}: {', '.join(map(str, right))}")
    if given.page:
        with tempfile.TemporaryDirectory() as folder:
            day = long_day.run(given.hours, Path(folder)) if given.hours else None
        date = datetime.now(UTC).date().isoformat()
        given.page.write_text(page(rows, right, date, day), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
