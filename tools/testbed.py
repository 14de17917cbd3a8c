"""The recorded faults of a samples folder, and the rules by which a report on one of them is judged.

Shared by `tools.score_testbed` and by the tests in tests/whole. A folder of captures has its truth in
truth.json; `expected.toml` says what a report may say of it, no more than the captures can tell apart.
"""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path

from skewscope.core.report import Incident, Report

ROUND_S = 0.045
"""Time of a round of the recordings."""

MAX_ALSO = 2


@dataclass(frozen=True)
class Truth:
    """What was done to a recording and what a report may say of it; times in s."""

    conditions: tuple[str, ...]
    secondary: tuple[str, ...]
    causes: tuple[str, ...]
    culprit: str
    onset_s: float
    end_s: float

    @property
    def onset_limit_s(self) -> float:
        """How far the onset may be off: 10 rounds, or a quarter of the fault's time up to 1 s."""
        return max(10 * ROUND_S, min(1.0, 0.25 * (self.end_s - self.onset_s)))


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


def faults_of(report: Report, fact: Truth) -> list[str]:
    """Return one line per rule that a report breaks; an empty list is a right answer."""
    alarms = [f"false alarm: {line(i)}" for i in false_alarms(report, fact)]
    if not fact.conditions:
        return alarms
    if not report.incidents:
        return ["nothing was found"]
    return _answer(report.incidents[0], fact) + alarms


def false_alarms(report: Report, fact: Truth) -> list[Incident]:
    """Return the incidents before the fault, and later ones that are neither right nor secondary."""
    if not fact.conditions:
        return list(report.incidents)
    earliest = fact.onset_s - max(10 * ROUND_S, 0.3)
    allowed = (*fact.conditions, *fact.secondary)
    return [
        i
        for number, i in enumerate(report.incidents)
        if i.onset_ns / 1e9 < earliest or (number and i.condition not in allowed)
    ]


def _answer(first: Incident, fact: Truth) -> list[str]:
    """Judge the first incident: condition, culprit, cause, onset, and what it says besides."""
    broken = []
    if not {first.condition, *first.also[:MAX_ALSO]} & set(fact.conditions):
        broken.append(f"condition: {line(first)}")
    if fact.culprit not in _addresses(first.culprits[0].id if first.culprits else ""):
        broken.append(f"culprit: {line(first)}")
    cause = first.causes[0].cause if first.causes else ""
    if cause not in fact.causes:
        broken.append(f"cause {cause}")
    lag = first.onset_ns / 1e9 - fact.onset_s
    if abs(lag) > fact.onset_limit_s:
        broken.append(f"onset {lag:+.2f} s off")
    if len(first.also) > MAX_ALSO:
        broken.append(f"also {first.also}")
    return broken


def _addresses(culprit: str) -> set[str]:
    return set(culprit.replace("->", " ").replace(":", " ").split())


def line(incident: Incident) -> str:
    """Return condition and first culprit."""
    who = incident.culprits[0].id if incident.culprits else "-"
    return f"{incident.condition} {who}"
