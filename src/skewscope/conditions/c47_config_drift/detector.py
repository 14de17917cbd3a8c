"""Large packets never arrive and small ones always do: a size limit that one port does not share.

Symptom: the same large segments are sent again and again while small ones on the same path pass.
Signal: smallest copy lost since losses began against the largest copy that crossed since (bytes).
Why these thresholds: see entry.toml.
Looks like: c25 (small ones are lost too, large ones pass too), c30 (the group stops: here because of it).
Blind to: settings that do not show in packet sizes (asymmetric devices, versions); sizes between the
    largest that passed and the smallest that was lost; paths that clamp the segment size.
Cost: a few array operations per window; no state.
References: docs/conditions c47; RFC 2923; docs/testbed.md section 7 (MTU mismatch).
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window


class Detector:
    """Compares the sizes of what is lost with the sizes of what passes."""

    STATE: dict[str, float] = {}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every link of one window."""
        p = self._params
        lost, passed = window["lost_smallest_bytes"], window["passed_largest_bytes"]
        found = (window["episode_lost"] >= p.min_lost) & (passed > 0) & (lost > passed * p.min_size_ratio)
        found &= (lost >= p.min_bytes) & (window["episode_fit"] >= p.min_fit)
        score = window["episode_fit"] * (1.0 - 0.4 * 0.5 ** (window["episode_lost"] - 2.0).clip(0.0))
        return Verdicts(
            np.where(found, FINDING, CLEAR).astype(np.int8),
            np.where(found, score, 0.0),
            window.onset_of("episode_lost"),
            {
                "lost_smallest_bytes": lost,
                "passed_largest_bytes": passed,
                "episode_lost": window["episode_lost"],
                "episode_fit": window["episode_fit"],
            },
        )
