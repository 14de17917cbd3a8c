"""Run the pipeline on every recorded fault of the samples, judge the reports and write a page.

Usage: python -m tools.score_testbed [NAME ...] [--page FILE]
The recordings are found by SKEWSCOPE_SAMPLES. Without --page the table goes to standard output.
Exit code 1: a recording is not right, or there is a false alarm; 3: no samples.
"""

import argparse
import math
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import skewscope
from skewscope.app.api import diagnose
from skewscope.core.report import Report
from tools import testbed

HEAD = (
    "folder",
    "expected",
    "found",
    "culprit",
    "p",
    "first cause",
    "onset error",
    "decided after",
    "run",
    "verdict",
)
CONFIDENCE = 0.95


@dataclass
class Row:
    """One recording, what was said of it, and how long that took."""

    name: str
    fact: testbed.Truth
    report: Report
    run_s: float

    @property
    def broken(self) -> list[str]:
        """The rules that the report breaks."""
        return testbed.faults_of(self.report, self.fact)

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table."""
        verdict = "right" if not self.broken else "; ".join(self.broken)
        want = " or ".join(self.fact.conditions) or "nothing"
        if not self.report.incidents:
            return self.name, want, "nothing", "-", "-", "-", "-", "-", f"{self.run_s:.1f} s", verdict
        first = self.report.incidents[0]
        who, cause = first.culprits[0], first.causes[0]
        extra = f" (also {', '.join(first.also)})" if first.also else ""
        others = ", ".join(i.condition for i in self.report.incidents[1:])
        return (
            self.name,
            want,
            first.condition + extra + (f"; then {others}" if others else ""),
            f"{who.kind} {who.id}",
            f"{who.probability:.2f}",
            f"{cause.cause} {cause.probability:.2f}",
            f"{first.onset_ns / 1e9 - self.fact.onset_s:+.2f} s",
            f"{first.detected_ns / 1e9 - self.fact.onset_s:.2f} s",
            f"{self.run_s:.1f} s",
            verdict,
        )


def measure(root: Path, name: str) -> Row:
    """Diagnose one recording."""
    start = time.perf_counter()
    report = diagnose([root / name])
    return Row(name, testbed.truth(root, name), report, time.perf_counter() - start)


def solve(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a falling function crosses zero."""
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) > 0 else (low, middle)
    return (low + high) / 2


def least_share(right: int, of: int) -> float:
    """Return the lower end of the two-sided 95 % interval of a share (Clopper-Pearson)."""
    if right == 0:
        return 0.0
    tail = (1 - CONFIDENCE) / 2

    def beyond(p: float) -> float:
        at_least = sum(math.comb(of, k) * p**k * (1 - p) ** (of - k) for k in range(right, of + 1))
        return tail - at_least

    return solve(beyond, 0.0, 1.0)


def most_events(count: int) -> float:
    """Return the upper end of the two-sided 95 % interval of a count (Poisson)."""
    tail = (1 - CONFIDENCE) / 2

    def beyond(mean: float) -> float:
        return sum(math.exp(-mean) * mean**k / math.factorial(k) for k in range(count + 1)) - tail

    return solve(beyond, 0.0, 10.0 * (count + 5))


def cpu_name() -> str:
    """Return the processor's name as the system gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [x.split(":", 1)[1].strip() for x in lines if x.startswith("model name")]
    return named[0] if named else platform.machine()


def machine() -> str:
    """Return what the figures were measured on."""
    return f"{os.cpu_count()} cores, {cpu_name()}, {platform.system()}, Python {platform.python_version()}"


def table(rows: list[Row]) -> str:
    """Return the rows as a Markdown table."""
    lines = [HEAD, ("---",) * len(HEAD), *(row.cells() for row in rows)]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def totals(rows: list[Row]) -> str:
    """Return the totals with their exposure and bounds."""
    right = sum(not row.broken for row in rows)
    alarms = sum(len(testbed.false_alarms(row.report, row.fact)) for row in rows)
    seen_s = sum((row.report.span_ns[1] - row.report.span_ns[0]) / 1e9 for row in rows)
    packets = sum(i.packets for row in rows for i in row.report.inputs)
    delays = sorted(
        row.report.incidents[0].detected_ns / 1e9 - row.fact.onset_s
        for row in rows
        if row.fact.conditions and not row.broken
    )
    share, most = least_share(right, len(rows)), 3600 * most_events(alarms) / seen_s
    text = (
        f"- **{right} of {len(rows)} folders right** (95 % lower bound of the share: {share:.2f}).\n"
        f"- **{alarms} false alarms** in {seen_s:.0f} s of traffic and {packets:,} packets "
        f"(95 % upper bound: {most:.0f} per hour; so short an exposure shows no more).\n"
    )
    if delays:
        text += (
            f"- Decided {delays[len(delays) // 2]:.2f} s after the injection (median of {len(delays)}), "
            f"{delays[-1]:.2f} s at most.\n"
        )
    return text


def page(rows: list[Row], day: str) -> str:
    """Return the whole page."""
    return f"""# The recorded test bed

<!-- Written by `make results`. Edits are lost. -->

**Data: packet captures of this project's own test bed** (a real tensor-parallel engine over network
namespaces on one machine, one real injected fault per folder). Not production traffic. The thresholds were
chosen while these recordings were at hand, so this page shows that the product explains them. It is no
estimate for clusters that it has not seen.

- Date: {day}. skewscope {skewscope.__version__}.
- Machine: {machine()}.
- Command: `make results`, with `SKEWSCOPE_SAMPLES` set.

{totals(rows)}
{table(rows)}
*expected*: conditions that count as right. *found*: the first incident, what it explains, and further
incidents. *p*: probability of the first culprit. *onset error*: onset of the first incident less the start
of the injection; a fault shows only when traffic meets it. *decided after*: time of the last packet that the
decision needed, less the start of the injection. *run*: wall time of the whole run with compiled kernels.

A report is right when the first incident names an expected condition (or explains one), accuses the culprit
first, ranks a cause first that the captures allow, and dates the onset within ten rounds or a quarter of the
fault's time, at most 1 s. Any incident before the fault, or beside it and not expected, is a false alarm. The
rules are in `tools/testbed.py`; the truths are in the samples.
"""


def main(arguments: list[str]) -> int:
    """Score the recordings and print or write the page."""
    parser = argparse.ArgumentParser(prog="python -m tools.score_testbed")
    parser.add_argument("names", nargs="*", help="folders; all if none is given")
    parser.add_argument("--page", type=Path, help="write the page to this file")
    given = parser.parse_args(arguments)
    root = Path(os.environ.get("SKEWSCOPE_SAMPLES", "")) / "testbed"
    if not (root / "expected.toml").is_file():
        print("SKEWSCOPE_SAMPLES names no folder that holds testbed/", file=sys.stderr)
        return 3
    diagnose([root / min(testbed.expected(root))])  # compiles what is not compiled yet
    rows = []
    for name in given.names or sorted(testbed.expected(root)):
        rows.append(measure(root, name))
        print("  ".join(rows[-1].cells()), flush=True)
    print(totals(rows), end="")
    if given.page:
        given.page.write_text(page(rows, datetime.now(UTC).date().isoformat()), encoding="utf-8")
    return 1 if any(row.broken for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
