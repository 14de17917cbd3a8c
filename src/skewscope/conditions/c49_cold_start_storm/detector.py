"""Several hosts fetch the same weights at once.

Symptom: starts take long, and work beside them waits.
Signal: hosts that take bulk from one source outside the work (`fetchers`), each about as much as the others
    (`fetched_spread`), and as much as weights (`fetched_bytes`).
Why these thresholds: see entry.toml.
Looks like: c09 (one transfer fills a port), c50 (bytes leave), a KV transfer (its source is a rank).
Blind to: weights from a store on the hosts themselves; fetches one after the other; what the bytes are.
Cost: a few array operations per window; no state.
References: docs/conditions c49.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window

SHOWN = ("fetchers", "fetched_bytes", "fetched_total_bytes", "fetched_spread")


class Detector:
    """Several at once, much, and alike."""

    STATE: dict[str, float] = {}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every source of one window."""
        p = self._params
        found = (window["fetchers"] >= p.min_fetchers) & (window["fetched_bytes"] >= p.min_bytes)
        found &= window["fetched_spread"] <= p.max_spread
        score = np.minimum(0.98, 0.7 + 0.08 * window["fetchers"])
        return Verdicts(
            np.where(found, FINDING, CLEAR).astype(np.int8),
            np.where(found, score, 0.0),
            window.onset_of("fetchers"),
            {n: window[n] for n in SHOWN},
        )
