"""Requests arrive evenly over replicas, yet running and waiting work piles up on one of them.

Symptom: one replica has a queue, a peer has none, and both were asked equally often.
Signal: averaged requests in hand of the busiest backend over the mean, on the scale from even (0) to all on
    one (1), together with the queue at the busiest (none at the freest) and the gap in running requests,
    while the shares of new requests are usual.
Why these thresholds: see entry.toml.
Looks like: c03 (arrivals are uneven), c40 (the favourite alternates with a polling period), c20 or c23 (a
    slow replica drifts: then this is a symptom, and its steps are slower).
Blind to: balance inside an endpoint (data-parallel ranks behind one port). No data for a single backend.
Cost: a few comparisons per router and window; one number each.
References: docs/conditions c22.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window


class Detector:
    """Judges the spread of work over replicas."""

    STATE: dict[str, float] = {"since_ns": 0.0}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every router of one window."""
        p = self._params
        uneven = (window["load_skew"] - 1.0) / np.maximum(window["backends"] - 1.0, 1.0) / p.min_uneven
        queue = window["queue_max"] - p.queue_ratio * window["queue_min"]
        pressure = (np.maximum(queue, 0.0) + p.running_weight * window["load_gap"]) / p.min_pressure
        even_arrivals = window["share_evidence"] < p.max_share_evidence
        margin = np.where(even_arrivals, np.maximum(np.minimum(uneven, pressure), 0.0), 0.0)
        found = margin >= 1.0
        # It began when the replicas came apart by a request and half the unevenness, for good.
        since = window.state["since_ns"]
        kept = np.where(since[window.slot] > 0, since[window.slot], float(window.start_ns))
        apart = (uneven >= 0.5) & (window["load_gap"] >= p.min_apart)
        since[window.slot] = np.where(apart, kept, 0.0)
        return Verdicts(
            np.where(found, FINDING, CLEAR).astype(np.int8),
            np.where(found, 1.0 - 0.3 / np.maximum(margin, 1.0), 0.5 * margin),
            since[window.slot].astype(np.int64),
            {
                "load_skew": window["load_skew"],
                "load_gap": window["load_gap"],
                "queue_max": window["queue_max"],
                "queue_min": window["queue_min"],
                "share_evidence": window["share_evidence"],
                "busy_step_ratio": window["busy_step_ratio"],
            },
        )
