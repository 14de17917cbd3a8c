"""Judge a report by the truth of its case, by the scoring rules of docs/bed.md."""

from __future__ import annotations

import math
from dataclasses import dataclass

from skewscope.core.report import Incident, Report
from skewscope.lab.bed.truth import Fault, Truth

MAX_ALSO = 2
ROUNDS = 10
DEFAULT_ROUND_S = 0.05
EARLY_S = 0.3


@dataclass(frozen=True)
class Verdict:
    """What a report was worth: `broken` rules of the answer, and false alarms, as text."""

    broken: tuple[str, ...]
    false_alarms: tuple[str, ...]
    found: str
    delay_s: float = math.nan
    """Time from the onset to the last sample that the decision needed."""

    @property
    def right(self) -> bool:
        """Whether the answer is right and nothing false was said."""
        return not self.broken and not self.false_alarms


def judge(report: Report, truth: Truth) -> Verdict:
    """Judge the first incident as the answer, and all of them for false alarms."""
    found = "; ".join(_line(i) for i in report.incidents) or "nothing"
    if not truth.faults:
        strange = [_line(i) for i in report.incidents if i.condition not in truth.allowed]
        return Verdict((), tuple(strange), found)
    fault = truth.faults[0]
    onset_ns = truth.first_sample_ns + round(fault.onset_s * 1e9)
    alarms = _false_alarms(report, fault, onset_ns, truth.round_s)
    if not report.incidents:
        return Verdict(("nothing was found",), alarms, found)
    first = report.incidents[0]
    delay_s = (first.detected_ns - onset_ns) / 1e9
    return Verdict(tuple(_broken(first, fault, onset_ns, truth.round_s)), alarms, found, delay_s)


def _rounds_s(round_s: float) -> float:
    return ROUNDS * (DEFAULT_ROUND_S if math.isnan(round_s) else round_s)


def _false_alarms(report: Report, fault: Fault, onset_ns: int, round_s: float) -> tuple[str, ...]:
    """Return incidents before the fault, and later ones that are neither right nor declared."""
    earliest_ns = onset_ns - max(_rounds_s(round_s), EARLY_S) * 1e9
    allowed = (fault.condition, *fault.also_right, *fault.secondary)
    return tuple(
        _line(i)
        for k, i in enumerate(report.incidents)
        if i.onset_ns < earliest_ns or (k and i.condition not in allowed)
    )


def _broken(first: Incident, fault: Fault, onset_ns: int, round_s: float) -> list[str]:
    broken = []
    if not {first.condition, *first.also[:MAX_ALSO]} & {fault.condition, *fault.also_right}:
        broken.append(f"condition {first.condition}")
    who = first.culprits[0].id if first.culprits else ""
    if not set(fault.culprit_id.replace("->", " ").split()) & set(
        who.replace("->", " ").replace(":", " ").split()
    ):
        broken.append(f"culprit {who or 'none'}")
    cause = first.causes[0].cause if first.causes else ""
    if cause not in fault.cause_right:
        broken.append(f"cause {cause or 'none'}")
    off_s = (first.onset_ns - onset_ns) / 1e9
    limit_s = max(_rounds_s(round_s), min(1.0, 0.25 * (fault.end_s - fault.onset_s)))
    if abs(off_s) > limit_s:
        broken.append(f"onset {off_s:+.2f} s off")
    if len(first.also) > MAX_ALSO:
        broken.append(f"also {', '.join(first.also)}")
    return broken


def _line(incident: Incident) -> str:
    who = incident.culprits[0].id if incident.culprits else "-"
    return f"{incident.condition} {who}"
