"""A group stopped with work in hand, and does not go on.

Symptom: collective messages and tokens fall to zero while requests are open.
Signal: time since the group's last message over its longest usual interval between rounds; requests and
    streams in hand at its endpoints; who ended its connections first, else whose last message is oldest.
Why these thresholds: see entry.toml.
Looks like: idle (nothing in hand), a long prompt (messages go on, c34), c47 and c25 (copies are lost), c42
    (a link was away), c38 (it went on by itself).
Blind to: groups whose endpoints are not in view: no data, since idle looks the same.
Cost: a few array operations per window; no state.
References: docs/conditions c30; docs/testbed.md section 7 (rank killed).
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window


class Detector:
    """Silence with work in hand, and who fell silent first."""

    STATE: dict[str, float] = {}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every member of one window."""
        p = self._params
        left = window["left_first"] > 0
        limit = np.where(left, p.min_silence_left, p.min_silence_ratio)
        stopped = (window["silence_ratio"] >= limit) & (window["demand"] > 0)
        nobody_left = np.isclose(window["left"], 0.0)
        first = left | (nobody_left & (window["stopped_first"] > 0))
        found = stopped & first
        sure = np.where(
            left,
            0.95,
            0.6 + 0.3 * np.minimum(window["behind_s"] / np.maximum(window["silence_s"], 1e-9), 1.0),
        )
        return Verdicts(
            np.where(found, FINDING, CLEAR).astype(np.int8),
            np.where(found, sure, 0.0),
            window.onset_of("silence_s"),
            {n: window[n] for n in ("silence_s", "silence_ratio", "demand", "left", "behind_s")},
        )
