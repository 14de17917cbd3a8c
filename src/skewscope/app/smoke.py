"""The smoke suite of the test bed: record, diagnose, judge, print."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from skewscope.app.api import diagnose
from skewscope.app.commands._run import say
from skewscope.lab.bed.needs import BedUnavailableError
from skewscope.lab.bed.processes import ProcessError
from skewscope.lab.bed.record import BusyError, NoEffectError, record
from skewscope.lab.bed.scenario import Drawn, draw, scaled
from skewscope.lab.bed.truth import Truth, read
from skewscope.lab.judge import Verdict, judge

SUITE = (
    "c20.healthy",
    "c20.faulty",
    "c38.faulty",
    "c25.faulty",
    "c25.near_miss",
    "c23.faulty",
    "c47.faulty",
    "c30.faulty",
    "c42.faulty",
    "c17.faulty",
    "c01.faulty",
    "c34.faulty",
    "c05.faulty",
    "c06.faulty",
    "c03.faulty",
    "c22.faulty",
)
SNAP_BYTES = 114
SHORTENED = 0.7
SEEDS, SEED_STEP = 3, 1000
WIDE = 150
SHOWN_EFFECTS = ("step_time", "step_max", "ttft", "chunk_gap_p95", "replica_share")


@dataclass(frozen=True)
class Line:
    """One scenario of the suite: its truth and verdict, or why there is none."""

    name: str
    truth: Truth | None = None
    verdict: Verdict | None = None
    why_not: str = ""
    exposure_s: float = 0.0
    """Traffic that was looked at."""


def run_suite(
    names: list[str], seed: int, folder: Path, noise: str | None, length: float = SHORTENED, calm: float = 1.0
) -> None:
    """Record what is not there yet, judge everything, print the table and totals.

    Cases have their times multiplied by `length` and the engine's by `calm`, see `scenario.scaled`.
    """
    start, lines = time.monotonic(), []
    for name in names:
        lines.append(_one(name, seed, folder, lambda n, s: scaled(draw(n, s, noise), length, calm)))
        say(f"{name}: {_state(lines[-1])}")
        _note(folder, lines[-1])
    _print(lines, time.monotonic() - start)


def _one(name: str, seed: int, folder: Path, drawn_by: Callable[[str, int], Drawn]) -> Line:
    """Take the first seed whose injection has an effect; what had none is no case, and is said."""
    why_not = ""
    for k in range(SEEDS):
        drawn = drawn_by(name, seed + k * SEED_STEP)
        case = folder / f"{drawn.name}.{drawn.variant}.s{drawn.seed}"
        if not (case / "truth.toml").exists():
            try:
                record(drawn, case, SNAP_BYTES, say)
            except NoEffectError as error:
                why_not = str(error)
                say(f"{why_not}; trying another seed")
                continue
            except (BusyError, BedUnavailableError, ProcessError) as error:
                return Line(name, why_not=str(error))
        truth = read((case / "truth.toml").read_text(encoding="utf-8"))
        report = diagnose([case / "taps"])
        seen_s = (report.span_ns[1] - report.span_ns[0]) / 1e9
        return Line(name, truth, judge(report, truth), exposure_s=seen_s)
    return Line(name, why_not=why_not)


def _state(line: Line) -> str:
    if line.verdict is None:
        return line.why_not
    if line.verdict.right:
        return "right"
    return "; ".join((*line.verdict.broken, *(f"false alarm {a}" for a in line.verdict.false_alarms)))


def _note(folder: Path, line: Line) -> None:
    """Add a line to the ledger of the folder: when, which case, its verdict, its exposure in s."""
    folder.mkdir(parents=True, exist_ok=True)
    case = line.truth.name if line.truth else line.name
    exposure_s = 0.0 if line.verdict is None else line.exposure_s
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with (folder / "ledger.tsv").open("a", encoding="utf-8") as ledger:
        ledger.write(f"{when}\t{case}\t{_state(line)}\t{exposure_s:.1f}\n")


def _print(lines: list[Line], took_s: float) -> None:
    table = Table("scenario", "expected", "found", "delay", "effect", "verdict", box=None, pad_edge=False)
    for line in lines:
        if line.truth is None or line.verdict is None:
            table.add_row(line.name, "-", "-", "-", "-", "no case")
            continue
        faults = line.truth.faults
        want = f"{faults[0].condition} {faults[0].culprit_id}" if faults else "nothing"
        delay = "-" if math.isnan(line.verdict.delay_s) else f"{line.verdict.delay_s:.2f} s"
        table.add_row(line.name, want, line.verdict.found, delay, effect_of(line.truth), _state(line))
    console = Console()
    if not console.is_terminal:
        console.width = WIDE
    console.print(table)
    judged = [x.verdict for x in lines if x.verdict is not None]
    right = sum(v.right for v in judged)
    alarms = sum(len(v.false_alarms) for v in judged)
    seen_s = sum(line.exposure_s for line in lines)
    console.print(
        f"{right} of {len(judged)} right, {alarms} false alarms in {seen_s:.0f} s of traffic, "
        f"{len(lines) - len(judged)} without a case; {took_s / 60:.1f} min"
    )


def effect_of(truth: Truth) -> str:
    """Return the largest of the effects that are shown, and what was sent again beyond the paired run."""
    if not truth.faults:
        return "-"
    effect = truth.faults[0].effect
    moved = {k: effect[f"{k}_ratio"] for k in SHOWN_EFFECTS if f"{k}_ratio" in effect}
    name, value = max(moved.items(), key=lambda x: x[1], default=("", math.nan))
    sent_again = effect.get("retransmissions_count", 0) - effect.get("retransmissions_paired_count", 0)
    return f"{name} x{value:.2f}" + (f", {sent_again:.0f} sent again" if sent_again > 0 else "")
