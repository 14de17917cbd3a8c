"""One member stops for long now and then while its peers wait; between the stops all is well.

Symptom: isolated gaps of several rounds in which one member sends nothing although its input is there.
Signal: largest excess of a window (own time or time inside, over peers and over what is usual, s) over the
    longest usual interval between rounds; excesses beyond `min_pause_ratio` that stand out of what the
    largest of a window usually is (`min_tail_ratio`) add up with a slow leak. Enough is a finding where the
    pauses beside the largest weigh as well (`min_rest_share`), or where this one alone is longer than a
    scheduler keeps a processor away (`lone_s`): any host stops a process once.
Why these thresholds: see entry.toml.
Looks like: c20 (late in most windows; it hides this), c30 (does not come back), c25 (a retransmission
    timer: such gaps are masked), c34 (a long prompt: all members take long and rounds run).
Blind to: pauses of all members at once; pauses shorter than an interval between rounds; a short pause that
    does not come again.
Cost: a few array operations per window; four numbers per member.
References: docs/conditions c38; docs/testbed.md section 4b (sigstop rows).
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window


class Detector:
    """Leaky sum of long pauses per member."""

    STATE: dict[str, float] = {"sum": 0.0, "since": 0.0, "count": 0.0, "largest": 0.0}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every member of one window."""
        p = self._params
        ratio = window["pause_ratio"]
        pause = (ratio >= p.min_pause_ratio) & (window["pause_tail_ratio"] >= p.min_tail_ratio)
        # No single pause is remembered for longer than the sum of several.
        size = np.where(pause, np.minimum(ratio, 10.0 * p.enough), 0.0)
        total, since, count, largest = (window.state[n] for n in ("sum", "since", "count", "largest"))
        before = total[window.slot]
        after = np.maximum(0.0, before - p.leak * window["rounds"]) + size
        onset = window.onset_of("excess_max_s").astype(np.float64)
        since[window.slot] = np.where(
            pause & (before <= 0.0), onset, np.where(after <= 0.0, 0.0, since[window.slot])
        )
        count[window.slot] = np.where(after <= 0.0, 0.0, count[window.slot] + pause)
        most = np.where(after <= size, size, np.maximum(largest[window.slot], size))
        largest[window.slot] = most
        total[window.slot] = np.minimum(after, 20.0 * p.enough)
        repeated = after - most >= p.min_rest_share * most
        found = pause & (after >= p.enough) & (repeated | (window["excess_max_s"] >= p.lone_s))
        score = np.where(found, 1.0 - 0.4 * p.enough / np.maximum(after, p.enough), 0.0)
        return Verdicts(
            np.where(found, FINDING, CLEAR).astype(np.int8),
            score,
            since[window.slot].astype(np.int64),
            {
                "excess_max_s": window["excess_max_s"],
                "pause_ratio": ratio,
                "pauses": count[window.slot].copy(),
                "own_s": window["own_s"],
                "own_s_ref": window["own_ref_s"],
            },
        )
