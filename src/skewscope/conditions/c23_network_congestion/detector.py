"""Transit grew on everything that crosses one link: a queue, or a longer or unsteady path.

Symptom: data takes longer between the taps on all pairs of one host and on no other pair.
Signal: growth of transit from tap to tap (90th percentile, s; round trips where there is one tap) per pair
    over the pair's reference; `slow_fit` = share of the host's pairs that are slow times share of all slow
    pairs that touch the host; growth over the usual time per round. Or the network says so: `marked_fit` is
    the same of pairs with far more packets marked, or notifications of congestion, than usual.
Why these thresholds: see entry.toml.
Looks like: c20 (own time grew, transit did not), c25 (copies lost, the rest as fast as ever), c09 (this
    port is full with bulk traffic), c24 (small messages wait, bulk does not).
Blind to: a queue that all pairs share from the first packet; paths without a tap at either end. Where two
    hosts have but one pair, the culprit end is told only by what else crosses their links.
Cost: a few array operations per window; one number per link.
References: docs/conditions c23; docs/testbed.md section 7.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window


class Detector:
    """Share of a host's pairs that slowed down, and of slow pairs that are the host's."""

    STATE: dict[str, float] = {"since": 0.0}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every link of one window."""
        p = self._params
        hit = (window["slow_fit"] >= p.min_fit) & (window["delay_ratio"] >= p.min_delay_ratio)
        late = hit
        marked = (window["marked_fit"] >= p.min_fit) & (
            (window["marked_share"] >= p.min_marked_share) | (window["notified_hz"] >= p.min_notified_hz)
        )
        hit = late | marked
        since = window.state["since"]
        onset = window.onset_of("delay_s").astype(np.float64)
        onset = np.where(marked & ~late, float(window.start_ns), onset)
        began = np.where(hit & (since[window.slot] == 0), onset, since[window.slot])
        fit = np.fmax(window["slow_fit"], window["marked_fit"])
        since[window.slot] = np.where(fit < p.min_fit / 2, 0.0, began)
        size = 1.0 - np.exp(-np.nan_to_num(window["delay_ratio"]).clip(0.0) / p.min_delay_ratio)
        return Verdicts(
            np.where(hit, FINDING, CLEAR).astype(np.int8),
            np.where(hit, fit * (0.5 + 0.5 * np.where(late, size, 0.5)), 0.0),
            np.where(began > 0, began, onset).astype(np.int64),
            {
                n: window[n]
                for n in (
                    "delay_s",
                    "delay_in_s",
                    "delay_out_s",
                    "delay_ratio",
                    "slow_fit",
                    "reordered",
                    "marked_share",
                    "notified_hz",
                    "marked_fit",
                )
            },
        )
