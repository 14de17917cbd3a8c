"""The heartbeat of a host comes late while the host works.

Symptom: a working host is taken for dead.
Signal: gaps of a regular small message against its usual gap (`gap_ratio`), how many of them in five seconds
    (`late_beats`), while the host sends other packets (`host_packets`).
Why these thresholds: see entry.toml.
Looks like: c45 and c30 (all that the host sends stops), c25 (beats are lost, not late), c31 (others' probes).
Blind to: heartbeats over HTTP or within a busy connection; a rhythm of fewer than eight beats before the
    fault; beats that were never regular, and those that never come again.
Cost: a few array operations per window; no state.
References: docs/conditions c48.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window

SHOWN = ("beat_s", "gap_ratio", "late_beats", "host_packets")


class Detector:
    """Several late beats of a host that works."""

    STATE: dict[str, float] = {}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every host of one window."""
        p = self._params
        late = (window["gap_ratio"] >= p.min_gap_ratio) & (window["late_beats"] >= p.min_late_beats)
        found = late & (window["host_packets"] > 0)
        score = np.minimum(0.98, 0.7 + 0.05 * window["gap_ratio"] + 0.03 * window["late_beats"])
        return Verdicts(
            np.where(found, FINDING, CLEAR).astype(np.int8),
            np.where(found, score, 0.0),
            window.onset_of("gap_ratio"),
            {n: window[n] for n in SHOWN},
        )
