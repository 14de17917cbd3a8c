"""A backend stands idle because no requests, or only pieces of requests, reach it, while its peers are fed.

Symptom: an engine without work beside busy ones behind the same router.
Signal: how long a backend has had nothing to do while a peer had requests, in steps, and how improbable
    it is under the usual shares that none of the requests sent meanwhile went to it; or request bodies that
    do not come in.
Why these thresholds: see entry.toml.
Looks like: a fall in demand (peers have nothing either), c03 (shares are uneven, nobody starves), a drain.
Blind to: a single endpoint without peers; bodies whose length the capture cut off. No data where an address
    asks one endpoint only.
Cost: a few comparisons per router and window; no state.
References: docs/conditions c02.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window


class Detector:
    """Judges whether a backend is starved by its router."""

    STATE: dict[str, float] = {}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every router of one window."""
        p = self._params
        idle = window["idle_steps"] / p.min_idle_steps
        missed = np.minimum(idle, window["missed_nats"] / p.min_missed_nats)
        slow = np.minimum(idle, window["idle_uploads"] / p.min_idle_uploads)
        margin = np.maximum(missed, slow)
        found = margin >= 1.0
        return Verdicts(
            np.where(found, FINDING, CLEAR).astype(np.int8),
            np.where(found, 1.0 - 0.3 / np.maximum(margin, 1.0), 0.5 * margin),
            window.onset_of("idle_steps"),
            {
                "idle_steps": window["idle_steps"],
                "missed_nats": window["missed_nats"],
                "idle_uploads": window["idle_uploads"],
            },
        )
