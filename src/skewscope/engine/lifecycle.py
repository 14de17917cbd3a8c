"""From verdicts to findings: pending, firing, ended. Timing and hysteresis live here, once."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from skewscope.core.entry import Entry
from skewscope.core.report import Evidence, Finding


@dataclass
class Verdict:
    """One row of a detector's answer."""

    ts_ns: int
    found: bool
    score: float
    onset_ns: int
    evidence: list[Evidence] = field(default_factory=list)


class ScopeLife:
    """The life of one condition at one scope.

    It fires when `timing.fire` of the last `timing.of` judged windows were findings, and ends when
    `timing.keep_s` of event time pass without one.
    """

    def __init__(self, entry: Entry, key: str) -> None:
        self._entry = entry
        self._key = key
        self._recent: deque[Verdict] = deque(maxlen=entry.timing.of)
        self.open: Finding | None = None
        self._last_found_ns = 0

    def wants(self, score: float) -> bool:
        """Say whether the evidence of a verdict with this score would be told."""
        return self.open is None or score >= self.open.score

    def step(self, verdict: Verdict) -> Finding | None:
        """Absorb a verdict; returns the finding when it fires now."""
        self._recent.append(verdict)
        if verdict.found:
            self._last_found_ns = verdict.ts_ns
        found = [v for v in self._recent if v.found]
        if self.open is not None:
            if verdict.found:
                self._update(self.open, verdict)
            return None
        if len(found) < self._entry.timing.fire:
            return None
        best = max(found, key=lambda v: v.score)
        self.open = Finding(
            condition=self._entry.id,
            scope=self._entry.scope,
            key=self._key,
            score=best.score,
            onset_ns=min(v.onset_ns for v in found),
            detected_ns=verdict.ts_ns,
            end_ns=None,
            evidence=best.evidence,
            windows=len(found),
        )
        return self.open

    def advance(self, now_ns: int) -> Finding | None:
        """Let event time pass; returns the finding when it ends now."""
        if self.open is None or now_ns - self._last_found_ns < self._entry.timing.keep_s * 1e9:
            return None
        ended, self.open = self.open, None
        ended.end_ns = self._last_found_ns
        self._recent.clear()
        return ended

    @staticmethod
    def _update(finding: Finding, verdict: Verdict) -> None:
        finding.windows += 1
        finding.onset_ns = min(finding.onset_ns, verdict.onset_ns)
        if verdict.score >= finding.score:
            finding.score = verdict.score
            finding.evidence = verdict.evidence
