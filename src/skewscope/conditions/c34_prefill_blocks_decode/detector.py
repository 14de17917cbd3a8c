"""A long prompt is prefilled in one piece, and all running streams stand still meanwhile.

Symptom: every open stream of the endpoint pauses at the same time, again and again.
Signal: a pause common to all begun streams, longer than their usual gap, in which the endpoint's host ran
    a collective round far larger than its usual decode and prefill rounds. Each pause adds the steps that
    it cost; the sum is forgotten within some tens of steps. Where long prompts are usual, pauses of
    several gaps beside rounds that exceed the decode rounds alone by far count as well.
Why these thresholds: see entry.toml.
Looks like: c38 (no round runs in the pause), c30 (nothing runs any more), c24 (a network queue), c20 and
    c23 (every round is slower, at its usual size), c01 (streams do not pause).
Blind to: engines whose rounds the tap does not see (one host, RDMA): no data. The pause alone would not
    tell a long prompt from any other stop.
Cost: some ten array operations per window; three numbers per endpoint.
References: docs/conditions c34; docs/testbed.md section 7, long prompts.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window


class Detector:
    """Sums the steps that prefill-sized rounds cost the running streams."""

    STATE: dict[str, float] = {"blocked": 0.0, "first_ns": 0.0, "counted_ns": 0.0}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every endpoint of one window."""
        p, state, slot = self._params, window.state, window.slot
        start = window.onset_of("common_pause_s")
        usual_s = window["chunk_gap_ref_s"]
        steps = (window.end_ns - window.start_ns) / 1e9 / np.where(usual_s > 0, usual_s, np.inf)
        blocked = state["blocked"][slot] * 0.5 ** (steps / p.memory_steps)
        ratio = window["pause_ratio"]
        hit = (ratio >= p.min_pause_ratio) & (window["pause_size_ratio"] >= p.min_size_ratio)
        # Where long prompts are what is usual, the pause itself must be long.
        hit |= (ratio >= p.long_pause_ratio) & (window["pause_decode_ratio"] >= p.min_decode_ratio)
        # The same pause shows in every window that it spans; only its growth counts.
        again = np.abs(start - state["counted_ns"][slot]) < 1e6
        cost = np.minimum(ratio - 1.0, np.where(again, steps, np.inf))
        fresh = blocked < p.forgotten_steps
        state["first_ns"][slot] = np.where(hit & fresh, start, state["first_ns"][slot])
        state["counted_ns"][slot] = np.where(hit, start, state["counted_ns"][slot])
        # Capped, so that a long episode is not remembered longer than a short one.
        blocked = np.where(hit, np.minimum(blocked + cost, p.max_blocked_steps), blocked)
        state["blocked"][slot] = blocked
        found = blocked >= p.min_blocked_steps
        margin = blocked / p.min_blocked_steps
        return Verdicts(
            np.where(found, FINDING, CLEAR).astype(np.int8),
            np.where(found, 1.0 - 0.3 / np.maximum(margin, 1.0), 0.5 * margin),
            state["first_ns"][slot].astype(np.int64),
            {
                "blocked_steps": blocked,
                "common_pause_s": window["common_pause_s"],
                "pause_ratio": ratio,
                "pause_size_ratio": window["pause_size_ratio"],
            },
        )
