"""The recorded faults of the samples, and the rules by which a report on one of them is judged."""

from __future__ import annotations

import json
import os
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skewscope.core.report import Incident, Report

SAMPLES = os.environ.get("SKEWSCOPE_SAMPLES", "")
ROOT = Path(SAMPLES) / "testbed"
NEEDED = not SAMPLES or not (ROOT / "expected.toml").is_file()
WHY = "SKEWSCOPE_SAMPLES names no folder that holds testbed/"

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


def expected() -> dict[str, dict[str, Any]]:
    """Return expected.toml, empty where there are no samples."""
    return {} if NEEDED else tomllib.loads((ROOT / "expected.toml").read_text())


def truth(name: str) -> Truth:
    """Return the truth of one recording."""
    want = expected()[name]
    said = json.loads((ROOT / name / "truth.json").read_text())
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
    if not fact.conditions:
        return [f"false alarm: {_line(i)}" for i in report.incidents]
    if not report.incidents:
        return ["nothing was found"]
    first = report.incidents[0]
    broken = _answer(first, fact)
    slack = max(10 * ROUND_S, 0.3)
    for number, incident in enumerate(report.incidents):
        if incident.onset_ns / 1e9 < fact.onset_s - slack:
            broken.append(f"before the fault: {_line(incident)}")
        elif number and incident.condition not in (*fact.conditions, *fact.secondary):
            broken.append(f"false alarm: {_line(incident)}")
    return broken


def _answer(first: Incident, fact: Truth) -> list[str]:
    """Judge the first incident: condition, culprit, cause, onset, and what it says besides."""
    broken = []
    if not {first.condition, *first.also[:2]} & set(fact.conditions):
        broken.append(f"condition: {_line(first)}")
    if fact.culprit not in _addresses(first.culprits[0].id if first.culprits else ""):
        broken.append(f"culprit: {_line(first)}")
    cause = first.causes[0].cause if first.causes else ""
    if cause not in fact.causes:
        broken.append(f"cause {cause}")
    lag = first.onset_ns / 1e9 - fact.onset_s
    if abs(lag) > max(10 * ROUND_S, min(1.0, 0.25 * (fact.end_s - fact.onset_s))):
        broken.append(f"onset {lag:+.2f} s off")
    if len(first.also) > 2:
        broken.append(f"also {first.also}")
    return broken


def _addresses(culprit: str) -> set[str]:
    return set(culprit.replace("->", " ").replace(":", " ").split())


def _line(incident: Incident) -> str:
    who = incident.culprits[0].id if incident.culprits else "-"
    return f"{incident.condition} {who}"
