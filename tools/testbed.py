"""The recorded faults of a samples folder, and the rules by which a report on one of them is judged.

Shared by `tools.score_testbed` and by the tests in tests/whole. A folder of captures has its truth in
truth.json; `expected.toml` says what a report may say of it, no more than the captures can tell apart.
"""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path

from skewscope.core.report import Incident, Report
from skewscope.lab.bed import truth as case
from skewscope.lab.bed.truth import Fault
from skewscope.lab.judge import Verdict, judge

ROUND_S = 0.045
"""Time of a round of the recordings."""


@dataclass(frozen=True)
class Truth:
    """What was done to a recording and what a report may say of it; times in s."""

    conditions: tuple[str, ...]
    secondary: tuple[str, ...]
    causes: tuple[str, ...]
    culprit: str
    onset_s: float
    end_s: float


def expected(root: Path) -> dict[str, dict[str, object]]:
    """Return expected.toml of a folder of recordings."""
    return tomllib.loads((root / "expected.toml").read_text(encoding="utf-8"))


def truth(root: Path, name: str) -> Truth:
    """Return the truth of one recording."""
    want = tomllib.loads((root / "expected.toml").read_text(encoding="utf-8"))[name]
    said = json.loads((root / name / "truth.json").read_text(encoding="utf-8"))
    first = said["first_packet_epoch"]
    return Truth(
        tuple(want["conditions"]),
        tuple(want.get("secondary", ())),
        tuple(want.get("cause_right", ())),
        want.get("culprit", ""),
        first + said["inject_start_s"],
        first + said["inject_end_s"],
    )


def verdict(report: Report, fact: Truth) -> Verdict:
    """Judge a report by the rules that hold for every case."""
    first = fact.conditions[:1]
    faults = tuple(
        Fault(
            condition=c,
            culprit_kind="",
            culprit_id=fact.culprit,
            cause_right=fact.causes,
            onset_s=fact.onset_s,
            end_s=fact.end_s,
            also_right=fact.conditions[1:],
            secondary=fact.secondary,
        )
        for c in first
    )
    return judge(report, case.Truth("", "sample", 0, "", 0, 0.0, faults, round_s=ROUND_S))


def faults_of(report: Report, fact: Truth) -> list[str]:
    """Return one line per rule that a report breaks; an empty list is a right answer."""
    found = verdict(report, fact)
    return [*found.broken, *(f"false alarm: {a}" for a in found.false_alarms)]


def false_alarms(report: Report, fact: Truth) -> tuple[str, ...]:
    """Return the incidents before the fault, and later ones that are neither right nor secondary."""
    return verdict(report, fact).false_alarms


def line(incident: Incident) -> str:
    """Return condition and first culprit."""
    who = incident.culprits[0].id if incident.culprits else "-"
    return f"{incident.condition} {who}"
