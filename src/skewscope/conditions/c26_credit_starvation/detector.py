"""A receiver inside the cluster takes no more: the sender has data and stays silent.

Symptom: closed windows or refused packets between hosts of the cluster.
Signal: time in the window during which b had closed its window to a (s), both inside the cluster; over RoCE,
    packets that b refused for want of a buffer (RNR NAK).
Why these thresholds: see entry.toml.
Looks like: c05 (the reader is a client), c23 (the queue is in the network), c20 and c38 (the reader's
    process is late in its rounds: they hide this).
Blind to: pause frames; a receiver over RoCE that withholds its clear to send (c20 tells that).
Cost: a few array operations per window; one number per pair.
References: docs/conditions c26; RFC 9293 section 3.8.6.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window


class Detector:
    """Leaky sums of time with a closed window and of refused packets."""

    STATE: dict[str, float] = {"closed": 0.0, "refused": 0.0, "since": 0.0}

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
        no = np.where(window["inner"] > 0, np.nan_to_num(window["not_ready"]), 0.0)
        refused = window.state["refused"][window.slot] * (1.0 - p.leak) + no
        window.state["refused"][window.slot] = np.minimum(refused, 3.0 * p.min_refused)
        onset = np.where(no > 0, window.onset_of("not_ready"), window.onset_of("zero_windows"))
        busy = (now > 0) | (no > 0)
        since[window.slot] = np.where(busy & (since[window.slot] == 0), onset, since[window.slot])
        since[window.slot] = np.where((after < 0.1) & (refused < 0.1), 0.0, since[window.slot])
        closed[window.slot] = after
        share = np.maximum(
            np.where(now > 0, after / p.enough, 0.0), np.where(no > 0, refused / p.min_refused, 0.0)
        )
        found = share >= 1.0
        return Verdicts(
            np.where(found, FINDING, CLEAR).astype(np.int8),
            np.where(found, 1.0 - 0.4 / np.maximum(share, 1.0), 0.0),
            np.where(since[window.slot] > 0, since[window.slot], onset).astype(np.int64),
            {
                "zero_window_s": window["zero_window_s"],
                "zero_windows": window["zero_windows"],
                "closed_windows": after.copy(),
                "not_ready": window["not_ready"],
            },
        )
