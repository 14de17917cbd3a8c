"""Copies are lost between hosts of the cluster, on one link.

Symptom: the same bytes are sent again because the first copy never arrived.
Signal: copies lost in the last second in the worse direction of a host's link (count, share of segments),
    and the share of the cluster's losses that this direction of this link explains (`lost_fit`).
Why these thresholds: see entry.toml.
Looks like: tail-loss probes to a stalled reader (the first copy arrived: not counted), reordering (copies
    arrived late: not counted), c47 (only large ones are lost), c42 (everything is lost for a time), c23
    (a full queue drops a few).
Blind to: losses of pure acknowledgements; single losses. With one tap, a loss that a duplicate-SACK does
    not clear counts as one.
Cost: a few array operations per window; one number per link.
References: docs/conditions c25; RFC 8985, RFC 2883; docs/testbed.md section 4.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window


class Detector:
    """Counts losses that one direction of one link explains."""

    STATE: dict[str, float] = {"since": 0.0}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every link of one window."""
        p = self._params
        lost = window["lost"]
        hit = (lost >= p.min_lost) & (window["lost_share"] >= p.min_share) & (window["lost_fit"] >= p.min_fit)
        since = window.state["since"]
        onset = window.onset_of("lost").astype(np.float64)
        began = np.where((lost > 0) & (since[window.slot] == 0), onset, since[window.slot])
        since[window.slot] = np.where(lost > 0, began, 0.0)
        breadth = 0.5 + 0.5 * window["lost_pair_share"]
        return Verdicts(
            np.where(hit, FINDING, CLEAR).astype(np.int8),
            np.where(hit, window["lost_fit"] * breadth * (1.0 - 0.4 * np.exp(-lost / p.min_lost)), 0.0),
            np.where(began > 0, began, onset).astype(np.int64),
            {n: window[n] for n in ("lost", "lost_share", "lost_fit", "lost_pairs", "lost_direction")},
        )
