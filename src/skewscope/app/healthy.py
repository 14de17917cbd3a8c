"""Hours of healthy and control traffic on the test bed, a ledger of what was found in them.

A control is a near miss: something changes, and nothing is wrong. All shipped scenarios take turns, and
with them the levels of noise; each piece has a seed of its own. Every piece becomes a line of the ledger as
soon as it is judged, so that a run which is interrupted goes on where it was.
"""

from __future__ import annotations

import csv
import shutil
import time
import zlib
from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from skewscope.app.api import diagnose
from skewscope.lab.bed import catalogue
from skewscope.lab.bed.record import BusyError, record
from skewscope.lab.bed.scenario import Drawn, draw, stretched
from skewscope.lab.judge import judge

NOISES = ("mid", "low", "high")
SNAP_BYTES = 114
FIRST_SEED = 50_000
"""Apart from the seeds of cases, on which thresholds may be chosen."""
JUDGING = ("wire", "features", "engine", "conditions", "diagnose")
"""The packages whose text decides what is found."""

KINDS: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "str": str}


@dataclass(frozen=True)
class Piece:
    """One line of the ledger."""

    number: int
    utc: str
    rules: str
    case: str
    kind: str
    noise: str
    exposure_s: float
    groups: int
    busy_ratio: float
    waited_ratio: float
    false_alarms: str
    """Joined by semicolons; empty where there was none."""
    not_used: str
    """Why the piece does not count; empty where it does."""


def read_ledger(file: Path) -> list[Piece]:
    """Return the pieces of a ledger; none where there is no file. Raises ValueError on a damaged line."""
    if not file.exists():
        return []
    with file.open(encoding="utf-8", newline="") as text:
        rows = list(csv.DictReader(text, delimiter="\t"))
    kinds = {f.name: KINDS[str(f.type)] for f in fields(Piece)}
    out = []
    for line, row in enumerate(rows, 2):
        try:
            values: dict[str, Any] = {name: kind(row[name]) for name, kind in kinds.items()}
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"{file}, line {line}: {error!r}") from None
        out.append(Piece(**values))
    return out


def append(file: Path, piece: Piece) -> None:
    """Add one line, and the header to an empty file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = not file.exists()
    with file.open("a", encoding="utf-8", newline="") as text:
        out = csv.writer(text, delimiter="\t", lineterminator="\n")
        if new:
            out.writerow([f.name for f in fields(Piece)])
        out.writerow(astuple(piece))


def rules() -> str:
    """Return eight hexadecimal digits that change with the text of what decides."""
    crc, root = 0, resources.files("skewscope")
    for package in JUDGING:
        with resources.as_file(root / package) as folder:
            for file in sorted(folder.rglob("*")):
                if file.suffix in (".py", ".toml"):
                    crc = zlib.crc32(file.read_bytes(), crc)
    return f"{crc:08x}"


def planned(number: int, length_s: float) -> Drawn:
    """Return piece `number` (from 0): scenarios in turn, healthy ones and controls alternating."""
    rounds, place = divmod(number, len(turns()))
    noise = NOISES[(number + rounds) % len(NOISES)]
    return stretched(draw(turns()[place], FIRST_SEED + number, noise), length_s)


@cache
def turns() -> tuple[str, ...]:
    """Return the scenarios that take turns, healthy and near-miss variants."""
    return tuple(
        f"{row.name}.{variant}"
        for row in catalogue.rows()
        for variant in ("healthy", "near_miss")
        # A near miss that is a fault of another kind is no control.
        if variant in row.variants and not draw(f"{row.name}.{variant}", FIRST_SEED).expected.condition
    )


def run(ledger: Path, folder: Path, minutes: float, piece_s: float, say: Callable[[str], None]) -> None:
    """Record and judge pieces for `minutes`. Captures with a false alarm stay in `folder`."""
    end, number = time.monotonic() + 60 * minutes, len(read_ledger(ledger))
    decides = rules()
    while time.monotonic() < end:
        drawn = planned(number, piece_s)
        piece = _piece(number, drawn, decides, folder / f"{number:05}", say)
        append(ledger, piece)
        state = piece.not_used or piece.false_alarms or "nothing found"
        say(f"{number} {piece.case}, noise {piece.noise}, {piece.exposure_s:.0f} s: {state}")
        number += 1


def _piece(number: int, drawn: Drawn, decides: str, folder: Path, say: Callable[[str], None]) -> Piece:
    kind = "healthy" if drawn.variant == "healthy" else "control"
    groups = len(drawn.topology.replicas())

    def line(exposure_s: float, busy: float, waited: float, alarms: str, not_used: str) -> Piece:
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return Piece(
            number, when, decides, f"{drawn.name}.{drawn.variant}.s{drawn.seed}", kind,
            drawn.workload.noise, round(exposure_s, 1), groups, round(busy, 3), round(waited, 3),
            alarms, not_used,
        )  # fmt: skip

    shutil.rmtree(folder, ignore_errors=True)
    try:
        truth = record(drawn, folder, SNAP_BYTES, say, paired=False).truth
    except BusyError as error:
        return line(0.0, 0.0, 0.0, "", str(error))
    report = diagnose([folder / "taps"])
    alarms = "; ".join(judge(report, truth).false_alarms)
    if not alarms:
        shutil.rmtree(folder)
    seen_s = (report.span_ns[1] - report.span_ns[0]) / 1e9
    return line(seen_s, truth.machine_busy_ratio, float(truth.bed["waited_ratio"]), alarms, "")
