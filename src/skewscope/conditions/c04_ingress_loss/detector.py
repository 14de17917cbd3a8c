"""Packets from client to server are lost.

Symptom: request bytes are sent again because the first copy never arrived.
Signal: copies lost in that direction of a client's leg in the last two seconds (count, share of segments).
Why these thresholds: see entry.toml.
Looks like: c07 (the other direction), c25 (inside the cluster), reordering (late copies are not counted).
Blind to: losses of pure acknowledgements; legs without a tap.
Cost: a few array operations per window; no state.
References: docs/conditions c04; RFC 8985, RFC 2883.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window


class Detector:
    """Counts losses in one direction of a client's leg."""

    STATE: dict[str, float] = {}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every leg of one window."""
        p = self._params
        lost, share = window["lost_up"], window["lost_up_share"]
        found = (lost >= p.min_lost) & (share >= p.min_share)
        return Verdicts(
            np.where(found, FINDING, CLEAR).astype(np.int8),
            np.where(found, 1.0 - 0.4 * np.exp(1.0 - lost / p.min_lost), 0.0),
            window.onset_of("lost_up"),
            {"lost_up": lost, "lost_up_share": share},
        )
