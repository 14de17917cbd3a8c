"""Tokens leave the serving layer at uneven times although the engine's rounds are regular.

Symptom: chunk gaps spread out, streams stutter, and the rounds between the ranks do not.
Signal: growth of the spread (p90 - p10) of the lag from a round's end at the host to the piece out of the
    host, in usual chunk gaps, while the host's gaps between rounds keep their tail.
Why these thresholds: see entry.toml.
Looks like: c17 (the earliest pieces are late as well), c38 and c20 (rounds are irregular as well), c34 (a
    large round in each pause), several tokens per event (gaps are multiples, the lag is the same).
Blind to: jitter behind the tap, in a gateway or in the network; hosts whose rounds the tap does not see: no
    data.
Cost: a few comparisons per endpoint and window; one number each.
References: docs/conditions c06.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window


class Detector:
    """Judges the spread of the serving layer's own time."""

    STATE: dict[str, float] = {"since_ns": 0.0}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every endpoint of one window."""
        p = self._params
        lag, low = window["egress_lag_share"], window["egress_lag_low_share"]
        share = np.maximum(window["egress_jitter_share"], lag - low)
        margin = np.maximum(share, 0.0) / p.min_jitter_share
        regular = (window["round_gap_p90_ratio"] <= p.max_round_tail) & (window["active_streams"] > 0)
        # Where the earliest pieces moved with the middle, all are late: c17.
        regular &= low < p.max_low_part * np.maximum(lag, window["egress_jitter_share"])
        # So is a host where output queues for steps at no fixed period, or requests wait before the engine.
        timed = window["chunk_gap_spread"] < p.max_period_spread
        regular &= (lag < p.max_queue_steps) | timed
        regular &= window["ingress_lag_share"] < p.max_ingress_steps
        margin = np.where(regular, margin, 0.0)
        found = margin >= 1.0
        # It began when half of what is needed was passed for good.
        since = window.state["since_ns"]
        kept = np.where(since[window.slot] > 0, since[window.slot], float(window.start_ns))
        since[window.slot] = np.where(margin >= 0.5, kept, 0.0)
        return Verdicts(
            np.where(found, FINDING, CLEAR).astype(np.int8),
            np.where(found, 1.0 - 0.3 / np.maximum(margin, 1.0), 0.5 * margin),
            since[window.slot].astype(np.int64),
            {
                "egress_jitter_share": share,
                "egress_lag_share": lag,
                "egress_lag_low_share": low,
                "round_gap_p90_ratio": window["round_gap_p90_ratio"],
            },
        )
