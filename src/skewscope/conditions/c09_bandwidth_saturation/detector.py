"""A port is full of bulk traffic, and what shares it waits.

Symptom: the rate at a port stays flat at its ceiling while delay grows or packets drop there.
Signal: 10th percentile of the port's rate over the last second against the largest rate seen
    (`plateau_ratio`); share of bytes that are neither collectives nor HTTP; growth of delay on the link.
Why these thresholds: see entry.toml.
Looks like: c23 (a queue elsewhere, or no bulk flow here), c49 (weights, before any token).
Blind to: the line rate itself, which packets do not tell: the ceiling is the largest rate seen. A port that
    is full from the first packet shows no growth of delay.
Cost: a few array operations per window; no state.
References: docs/conditions c09; docs/testbed.md section 7 (bufferbloat, UDP cross traffic).
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window

SHOWN = ("rate_bps", "plateau_ratio", "bulk_share", "top_share", "delay_ratio", "lost")


class Detector:
    """A flat rate at the ceiling, bulk bytes, and a queue behind them."""

    STATE: dict[str, float] = {"since": 0.0}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every port of one window."""
        p = self._params
        flat = (window["plateau_ratio"] >= p.min_plateau) & (window["bulk_share"] >= p.min_bulk_share)
        flat &= window["rate_bps"] > 0
        hurt = (window["delay_ratio"] >= p.min_delay_ratio) | (window["lost"] >= p.min_lost)
        since = window.state["since"]
        begun = since[window.slot]
        since[window.slot] = np.where(hurt & (begun == 0), float(window.start_ns), begun)
        since[window.slot] = np.where(hurt, since[window.slot], 0.0)
        found = flat & hurt
        onset = np.where(since[window.slot] > 0, since[window.slot], window.start_ns)
        return Verdicts(
            np.where(found, FINDING, CLEAR).astype(np.int8),
            np.where(found, window["plateau_ratio"] * (0.6 + 0.4 * window["bulk_share"]), 0.0),
            onset.astype(np.int64),
            {n: window[n] for n in SHOWN},
        )
