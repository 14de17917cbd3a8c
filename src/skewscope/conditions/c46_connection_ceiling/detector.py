"""A gateway passes on no more than so many requests at once.

Symptom: time to first token grows although no engine queues.
Signal: requests that came in full and were not passed on, all the time for a second (`queued_min`), while the
    number open at engines stays flat (`plateau`: least over largest at the windows' ends).
Why these thresholds: see entry.toml.
Looks like: c01 (the queue is at the engine), c17 at the gateway (its number at engines is not flat).
Blind to: a limit on accepted connections, under which a request does not even reach the gateway; a gateway
    whose engines' legs are not captured; a limit that was reached for less than a second.
Cost: a few array operations per window; no state.
References: docs/conditions c46.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window

SHOWN = ("queued", "upstream", "plateau")


class Detector:
    """A flat number of requests at engines, and others that wait."""

    STATE: dict[str, float] = {}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every gateway of one window."""
        p = self._params
        found = (window["queued_min"] >= p.min_queued) & (window["plateau"] >= p.min_plateau)
        onset = window.onset_of("queued")
        score = window["plateau"] * np.minimum(1.0, 0.7 + 0.1 * window["queued"])
        return Verdicts(
            np.where(found, FINDING, CLEAR).astype(np.int8),
            np.where(found, score, 0.0),
            onset,
            {n: window[n] for n in SHOWN},
        )
