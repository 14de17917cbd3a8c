"""A client does not take its response: its window shrinks and closes.

Symptom: the server has response data and may not send it.
Signal: time in the last two seconds during which the client's window was closed (s), and how often it
    said so; dated from when the window began to shrink.
Why these thresholds: see entry.toml.
Looks like: c26 (the reader is inside the cluster), c06 (the window is open), c32 (the gateway holds data).
Blind to: backlog in the server's own host or in its link, which shows as delay (c23, c06); readers that
    are slow but never close their window.
Cost: a few array operations per window; no state.
References: docs/conditions c05; RFC 9293 section 3.8.6.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window


class Detector:
    """Time with a closed window on a client's leg."""

    STATE: dict[str, float] = {}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every leg of one window."""
        p = self._params
        closed = window["zero_window_s"]
        found = (closed >= p.min_closed_s) & (window["segments_down"] + window["zero_windows"] > 0)
        return Verdicts(
            np.where(found, FINDING, CLEAR).astype(np.int8),
            np.where(found, 1.0 - 0.3 * p.min_closed_s / np.maximum(closed, p.min_closed_s), 0.0),
            window.onset_of("zero_windows"),
            {
                "zero_window_s": closed,
                "peers_zero_window_s": window["peers_zero_window_s"],
            },
        )
