"""One member of a collective group takes longer than its peers, round after round.

Symptom: every round waits for the same member, which itself waits least.
Signal: per round (own time + time inside) of a member less the median of the others' in the same round
    (s), less what is usual for the member; a window is a hit where the mean of that reaches
    `min_excess_ratio` of the usual time per round and the member was late in enough of its rounds. Hits
    are counted by a sequential probability ratio test. Without a reference (a fault from the first
    packet) the excess over peers itself must stay beyond `blind_ratio`, or the member is known by the
    relief when the handicap ends and the group becomes faster.
Why these thresholds: see entry.toml; p0 and p1 are the shares of hit windows in healthy runs and under a
    persistent fault, and the limit gives a false alarm in about a thousand windows at worst.
Looks like: c38 (isolated long pauses: few windows hit), c23 and c25 (transit grew, own time did not), c39
    (the late member rotates, so none collects hits), a longer prompt (all members take longer alike).
Blind to: members without a tap of their own; groups of one; a constant handicap below `blind_ratio` that
    is there from the first packet (a fixed order of entry is normal). No data until rounds were learned.
Cost: two dozen array operations per window; eight numbers per member.
References: docs/conditions c20; Wald, Sequential Analysis (1947).
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window


class Detector:
    """Sequential test on windows in which a member held up its group."""

    STATE: dict[str, float] = {
        "llr": 0.0,
        "since": 0.0,
        "run": 0.0,
        "strong": 0.0,
        "first": 0.0,
        "age": 0.0,
        "blind": 0.0,
        "relief": 0.0,
    }

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every member of one window."""
        p, slot, state = self._params, window.slot, window.state
        gain = np.log(p.hit_share_fault / p.hit_share_healthy)
        loss = np.log((1.0 - p.hit_share_fault) / (1.0 - p.hit_share_healthy))
        first = np.where(state["first"][slot] > 0, state["first"][slot], float(window.start_ns))
        state["first"][slot] = first
        state["age"][slot] += 1.0
        hit = self._late(window)
        before = state["llr"][slot]
        after = np.clip(before + np.where(hit, gain, loss), 0.0, p.limit + 3.0 * gain)
        state["llr"][slot] = after
        self._date(window, hit, before, after)
        found = hit & (after >= p.limit)
        unsteady = self._unsteady(window)
        blind = self._blind(window) | unsteady
        relieved = self._relieved(window)
        onset = np.where(found, state["since"][slot], first)
        onset = np.where(unsteady, window.onset_of("unsteady_ratio"), onset)
        over = (after - p.limit) / gain + window["excess_ratio"].clip(0.0, 3.0)
        score = np.where(
            found, 1.0 - 0.5 * np.exp(-over), np.where(blind | relieved, 0.8, 0.5 * after / p.limit)
        )
        return Verdicts(
            np.where(found | blind | relieved, FINDING, CLEAR).astype(np.int8),
            score.clip(0.0, 1.0),
            onset.astype(np.int64),
            self._evidence(window),
        )

    def _date(self, window: Window, hit: np.ndarray, before: np.ndarray, after: np.ndarray) -> None:
        """Note since when a member is late.

        That is the first hit of the run-up. Where hits become strong it is the first of the row that holds
        the first strong one: a weak hit by chance shortly before is not where a strong fault began.
        """
        slot, state = window.slot, window.state
        onset = window.onset_of("late_rounds").astype(float)
        run, since, strong = (state[name][slot] for name in ("run", "since", "strong"))
        # Negative after one window without a hit: a strong fault may miss a short one, hardly two in a row.
        missed = np.where(run > 0.0, -run, 0.0)
        run = np.where(hit, np.where(run != 0.0, np.abs(run), onset), missed)
        since = np.where(hit & (before <= 0.0), onset, since)
        first = hit & (window["excess_ratio"] >= self._params.strong_excess_ratio) & (strong == 0.0)
        since = np.where(first, run, since)
        state["run"][slot] = run
        state["since"][slot] = np.where(after <= 0.0, 0.0, since)
        state["strong"][slot] = np.where(after <= 0.0, 0.0, np.maximum(strong, first))

    def _late(self, window: Window) -> np.ndarray:
        """Return where a window held the group up beyond what is usual for the member."""
        p = self._params
        share = window["late_rounds"] / np.maximum(window["rounds"], 1.0)
        steady = (window["excess_z"] >= p.min_z) & (window["excess_ratio"] >= p.min_steady_ratio)
        often = (share >= p.min_late_share) | steady
        strong = (window["late_rounds"] > 0) & (window["excess_ratio"] >= p.strong_excess_ratio)
        hit = (window["excess_ratio"] >= p.min_excess_ratio) & (often | strong)
        # A group that is faster than usual is not held up: somebody else was relieved.
        return hit & (window["group_slowdown"] >= p.min_slowdown)

    def _blind(self, window: Window) -> np.ndarray:
        """Return where a member was far behind its peers from the first packet on."""
        p, slot, state = self._params, window.slot, window.state
        beyond = (window["peer_ratio"] - p.blind_ratio).clip(0.0, p.blind_step)
        fresh = (state["blind"][slot] > 0) | (state["age"][slot] <= p.fresh_windows)
        state["blind"][slot] = (state["blind"][slot] + np.where(fresh, beyond, 0.0) - p.blind_leak).clip(0.0)
        return (state["blind"][slot] >= p.blind_enough) & (beyond > 0)

    def _unsteady(self, window: Window) -> np.ndarray:
        """Return where a member is late now and then in its first rounds, which no peer is."""
        p = self._params
        return (
            (window["unsteady_ratio"] >= p.min_unsteady_ratio)
            & (window["unsteady_late_share"] >= p.min_late_share)
            & (window["unsteady_level_share"] >= p.min_level_share)
        )

    def _relieved(self, window: Window) -> np.ndarray:
        """Return where a member stopped being late that had been so from the first packet on."""
        p, slot, state = self._params, window.slot, window.state
        drop = (window["excess_ratio"] <= -p.min_relief_ratio) & (window["excess_z"] <= -p.min_z)
        drop &= window["group_slowdown"] <= p.max_relief_slowdown
        state["relief"][slot] = np.where(drop, state["relief"][slot] + 1.0, 0.0)
        return state["relief"][slot] >= p.relief_windows

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
            "received_ratio": window["received_ratio"],
        }
