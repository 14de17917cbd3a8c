"""One member of a collective group takes longer than its peers, round after round.

Symptom: every round waits for the same member, which itself waits least.
Signal: per round (own time + time inside) of a member less the median of the others' in the same round
    (s), less what is usual for the member; a window is a hit where the mean of that reaches
    `min_excess_ratio` of the usual time per round and the member was late in enough of its rounds. Hits
    are counted by a sequential probability ratio test. Without a reference (a fault from the first
    packet) the excess over peers itself must reach `blind_ratio`.
Why these thresholds: see entry.toml; p0 and p1 are the shares of hit windows in healthy runs and under a
    persistent fault, and the limit gives a false alarm in about a thousand windows at worst.
Looks like: c38 (isolated long pauses: few windows hit), c23 and c25 (transit grew, own time did not), c39
    (the late member rotates, so none collects hits), a longer prompt (all members take longer alike).
Blind to: members without a tap of their own; groups of one; a constant handicap below `blind_ratio` that
    is there from the first packet (a fixed order of entry is normal). No data until rounds were learned.
Cost: a dozen array operations per window; three numbers per member.
References: conditions.md c20; Wald, Sequential Analysis (1947).
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window


class Detector:
    """Sequential test on windows in which a member held up its group."""

    STATE: dict[str, float] = {"llr": 0.0, "since": 0.0}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every member of one window."""
        p = self._params
        excess, rounds, late = window["excess_ratio"], window["rounds"], window["late_rounds"]
        share = late / np.maximum(rounds, 1.0)
        usual_known = rounds > 0
        hit = usual_known & (excess >= p.min_excess_ratio)
        hit &= (share >= p.min_late_share) | ((late > 0) & (excess >= p.strong_excess_ratio))
        blind = window["peer_ratio"] >= p.blind_ratio
        hit |= blind
        llr, since = window.state["llr"], window.state["since"]
        gain = np.log(p.hit_share_fault / p.hit_share_healthy)
        loss = np.log((1.0 - p.hit_share_fault) / (1.0 - p.hit_share_healthy))
        before = llr[window.slot]
        after = np.clip(before + np.where(hit, gain, loss), 0.0, p.limit + 3.0 * gain)
        onset = np.where(blind & ~usual_known, window.start_ns, window.onset_of("late_rounds"))
        began = np.where(hit & (before <= 0.0), onset.astype(np.float64), since[window.slot])
        llr[window.slot] = after
        since[window.slot] = np.where(after <= 0.0, 0.0, began)
        found = hit & (after >= p.limit) & (since[window.slot] > 0)
        score = np.where(
            found,
            1.0 - 0.5 * np.exp(-(after - p.limit) / gain - excess.clip(0.0, 3.0)),
            0.5 * after / p.limit,
        )
        return Verdicts(
            np.where(found, FINDING, CLEAR).astype(np.int8),
            score,
            since[window.slot].astype(np.int64),
            self._evidence(window),
        )

    @staticmethod
    def _evidence(window: Window) -> dict[str, np.ndarray]:
        return {
            "busy_s": window["busy_s"],
            "busy_s_ref": window["peers_busy_s"],
            "excess_max_s": window["excess_max_s"],
            "excess_ratio": window["excess_ratio"],
            "own_s": window["own_s"],
            "own_s_ref": window["peers_own_s"],
            "wait_s": window["wait_s"],
        }
