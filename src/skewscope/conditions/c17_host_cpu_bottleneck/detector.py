"""The serving host's processors are the bottleneck: tokens leave late although the rounds are on time.

Symptom: time from a finished round to the token on the wire grows for every piece, with the load.
Signal: the lag from a round's end at the host to the piece out of it, in usual chunk gaps: its median and
    its earliest tenth grew, or it queues for whole steps at no fixed period; or the time from a request's
    last byte to an idle engine's first round grew by whole steps. The gaps between rounds keep their length.
Why these thresholds: see entry.toml.
Looks like: c06 (the lag spreads, but the earliest pieces stay early), c20 (a rank's own time grows: rounds
    are late), c38 (isolated pauses), c01 (the queue is in the scheduler), c10 (the GPU waits for its input).
Blind to: a slow front end on a host of its own, seen from the engine; hosts whose rounds the tap does not
    see: no data.
Cost: a few comparisons per endpoint and window; one number each.
References: docs/conditions c17.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window


class Detector:
    """Judges the middle of the serving layer's own time."""

    STATE: dict[str, float] = {"since_ns": 0.0}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every endpoint of one window."""
        p = self._params
        share, ingress = window["egress_lag_share"], window["ingress_lag_share"]
        # All pieces are late: the earliest tenth too. Growth in usual lags as well: a lag that always was
        # a good part of a step is no news.
        late = np.minimum(share / p.min_lag_share, window["egress_lag_ratio"] / p.min_lag_ratio)
        late = np.where(window["egress_lag_low_share"] >= p.min_low_part * share, late, 0.0)
        # Output queues for whole steps, at no fixed period.
        queue = np.where(window["chunk_gap_spread"] >= p.min_gap_spread, share / p.min_queue_steps, 0.0)
        out = np.where(window["active_streams"] > 0, np.maximum(late, queue), 0.0)
        margin = np.maximum(np.maximum(out, ingress / p.min_ingress_steps), 0.0)
        margin = np.where(window["round_gap_ratio"] <= p.max_round_gap, margin, 0.0)
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
                "egress_lag_share": share,
                "egress_lag_ratio": window["egress_lag_ratio"],
                "egress_lag_low_share": window["egress_lag_low_share"],
                "ingress_lag_share": ingress,
                "round_gap_ratio": window["round_gap_ratio"],
            },
        )
