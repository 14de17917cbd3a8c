"""A receiver inside the cluster takes no more: the sender has data and stays silent.

Symptom: closed windows between hosts of the cluster.
Signal: time in the window during which b had closed its window to a (s), both inside the cluster.
Why these thresholds: see entry.toml.
Looks like: c05 (the reader is a client), c23 (the queue is in the network), c20 and c38 (the reader's
    process is late in its rounds: they hide this).
Blind to: RDMA back-pressure (RNR, pause frames), which needs RoCE sources.
Cost: a few array operations per window; one number per pair.
References: docs/conditions c26; RFC 9293 section 3.8.6.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window


class Detector:
    """Leaky sum of time with a closed window."""

    STATE: dict[str, float] = {"closed": 0.0, "since": 0.0}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every pair of one window."""
        p = self._params
        seconds = (window.end_ns - window.start_ns) / 1e9
        closed, since = window.state["closed"], window.state["since"]
        before = closed[window.slot]
        now = np.where(window["inner"] > 0, window["zero_window_s"], 0.0)
        after = np.minimum(before * (1.0 - p.leak) + now / seconds, 3.0 * p.enough)
        onset = window.onset_of("zero_windows").astype(np.float64)
        since[window.slot] = np.where((now > 0) & (since[window.slot] == 0), onset, since[window.slot])
        since[window.slot] = np.where(after < 0.1, 0.0, since[window.slot])
        closed[window.slot] = after
        found = (after >= p.enough) & (now > 0)
        return Verdicts(
            np.where(found, FINDING, CLEAR).astype(np.int8),
            np.where(found, 1.0 - 0.4 * p.enough / np.maximum(after, p.enough), 0.0),
            np.where(since[window.slot] > 0, since[window.slot], onset).astype(np.int64),
            {
                "zero_window_s": window["zero_window_s"],
                "zero_windows": window["zero_windows"],
                "closed_windows": after.copy(),
            },
        )
