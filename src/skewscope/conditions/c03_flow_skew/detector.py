"""A router gives new requests to its backends in shares far from the usual ones.

Symptom: one backend is loaded, another is nearly idle, and the requests explain it.
Signal: log likelihood ratio of the best recent change of shares against the usual ones (equal, where
    nothing else was seen), over the dispersion of the router's own habit; and the load that follows.
    From the first packet on all requests count together until shares are usual, and the load must pile
    up as in c22: a backend that is asked more on purpose, and copes, is no fault.
Why these thresholds: see entry.toml.
Looks like: c22 (arrivals are even, the backlog is not), c40 (the favourite alternates), weights that an
    operator set before the capture began (no uneven load follows, or it is the usual share).
Blind to: a router with one visible backend, and endpoints behind one address. No data then.
Cost: a few comparisons per router and window; no state.
References: docs/conditions c03; docs/testbed.md section 7, uneven routing.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window


class Detector:
    """Judges the shares of new requests."""

    STATE: dict[str, float] = {}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every router of one window."""
        p, backends = self._params, window["backends"]
        # More backends give chance more ways to look uneven: half a nat per degree of freedom.
        needed = p.min_evidence + 0.5 * (backends - 2.0)
        load = 1.0 + (p.min_load_skew - 1.0) * (backends - 1.0)
        margin = np.minimum.reduce(
            [
                window["share_evidence"] / needed,
                window["share_max_ratio"] / p.min_share_ratio,
                p.max_least_ratio / np.maximum(window["share_min_ratio"], 0.1 * p.max_least_ratio),
                window["load_skew"] / load,
            ]
        )
        blind = self._blind(window)
        found = (margin >= 1.0) | blind
        surplus = np.maximum(window["share_evidence"] - needed, 0.0)
        sure = 1.0 - 0.3 * np.exp(-surplus / 4.0)
        return Verdicts(
            np.where(found, FINDING, CLEAR).astype(np.int8),
            np.where(found, sure, 0.5 * np.minimum(margin, 1.0)),
            window.onset_of("share_evidence"),
            {
                "share_evidence": window["share_evidence"],
                "share_max_ratio": window["share_max_ratio"],
                "share_min_ratio": window["share_min_ratio"],
                "changed_requests": window["changed_requests"],
                "load_skew": window["load_skew"],
            },
        )

    def _blind(self, window: Window) -> np.ndarray:
        """Return where all requests since the first packet were uneven, and work piles up where they went.

        One start is tried, not one of 64, so less evidence is needed; equal shares are a guess, so the
        harm must show as in c22. A nat per further backend keeps a fair router below 1 % in 64 requests.
        """
        p, backends = self._params, window["backends"]
        uneven = (window["load_skew"] - 1.0) / np.maximum(backends - 1.0, 1.0)
        queue = np.maximum(window["queue_max"] - p.queue_ratio * window["queue_min"], 0.0)
        return (
            (window["whole_evidence"] >= p.blind_evidence + backends - 2.0)
            & (window["share_max_ratio"] >= p.min_share_ratio)
            & (window["share_min_ratio"] <= p.max_least_ratio)
            & (uneven >= p.blind_uneven)
            & (queue + p.running_weight * window["load_gap"] >= p.min_pressure)
        )
