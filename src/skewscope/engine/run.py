"""The engine: slices in, findings out. Offline, live and simulated samples take the same way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skewscope.core.condition import Detector
from skewscope.core.entry import Entry
from skewscope.core.features import Feature, FeatureRows, Slice
from skewscope.core.report import Finding, NoData
from skewscope.engine.judge import Judge
from skewscope.engine.sight import Sight

Observer = Callable[[Slice, Mapping[str, FeatureRows]], None]


@dataclass
class Plan:
    """What the engine runs: feature families in order, and (entry, fresh detector) per condition."""

    features: Sequence[Feature]
    conditions: Sequence[tuple[Entry, Detector]]


class Engine:
    """Features, detectors and the life of findings over event time."""

    def __init__(self, plan: Plan, observers: Sequence[Observer] = ()) -> None:
        """Check that every needed feature exists; raises ValueError naming what does not."""
        self._features = plan.features
        specs = {f.SPEC.scope: f.SPEC for f in plan.features}
        for entry, _ in plan.conditions:
            spec = specs.get(entry.scope)
            if spec is None:
                raise ValueError(f"{entry.id}: no feature family for scope {entry.scope!r}")
            unknown = sorted(set(entry.needs) - set(spec.columns))
            if unknown:
                raise ValueError(f"{entry.id}: scope {entry.scope!r} has no feature {', '.join(unknown)}")
        self._judges = [Judge(entry, detector) for entry, detector in plan.conditions]
        self._observers = observers
        self._sight = Sight()
        self.findings: list[Finding] = []
        """All findings so far, in the order in which they fired; open ones have end_ns None."""

    def feed(self, slice_: Slice) -> list[Finding]:
        """Absorb one slice; returns the findings that fire in it."""
        rows: dict[str, FeatureRows] = {}
        # Windows without samples make NaN columns by design; their arithmetic is silent.
        with np.errstate(invalid="ignore", divide="ignore"):
            for feature in self._features:
                rows[feature.SPEC.scope] = feature.update(slice_, rows)
        for observe in self._observers:
            observe(slice_, rows)
        self._sight.note(slice_)
        fired: list[Finding] = []
        for judge in self._judges:
            now, _ = judge.step(slice_, rows.get(judge.entry.scope), self._sight)
            fired += now
        self.findings += fired
        return fired

    def no_data(self) -> list[NoData]:
        """Return the conditions that could not be judged even once, with what was missing."""
        out = []
        for judge in self._judges:
            if judge.judged == 0:
                missing = [f"{judge.entry.scope}.{n}" for n in judge.entry.needs if n not in judge.known]
                # Each was known somewhere, but never together at one scope.
                missing = missing or [f"{judge.entry.scope}.{n}" for n in judge.entry.needs]
                out.append(NoData(judge.entry.id, missing))
        return out
