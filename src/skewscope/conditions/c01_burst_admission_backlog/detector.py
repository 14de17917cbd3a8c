"""Requests arrive faster than the engine admits them, and a queue builds in front of it.

Symptom: time to first byte climbs while running streams go on at their usual pace and batch.
Signal: over consecutive engine steps (instants at which the endpoint sends) requests wait and no slot
    beyond the learned peak is taken (`full_steps`); the queue is a good part of the running streams
    (`backlog_ratio`) and its oldest request has waited several times the usual steps.
Why these thresholds: see entry.toml. Steps, not seconds: a slow rank or a lossy link makes slower
    steps, not more of them, and an engine that stands still makes none.
Looks like: c34 (the open streams pause too), c08 (slots are free while requests wait), c17 (the host is
    late, not the queue), c32 (the engine's leg is on time).
Blind to: what waits inside a gateway that opens no connection yet; a single long-running slot that was
    full before the capture began and never completes a stream. No data until the endpoint sent anything.
Cost: a few comparisons per endpoint and window; no state.
References: docs/conditions c01; docs/testbed.md section 7, overload.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window


class Detector:
    """Judges every endpoint's queue."""

    STATE: dict[str, float] = {}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every endpoint of one window."""
        p = self._params
        patience = p.patience * np.maximum(window["ttft_ref_steps"], p.min_ttft_steps)
        margin = np.minimum.reduce(
            [
                window["open_requests"] / p.min_open_requests,
                window["backlog_ratio"] / p.min_backlog_ratio,
                window["full_steps"] / p.min_full_steps,
                window["oldest_open_steps"] / patience,
            ]
        )
        # A gateway's own queue is that of the engines behind it, which are judged themselves.
        margin = np.where(window["gateway"] > 0, 0.0, margin)
        found = margin >= 1.0
        score = np.where(found, 1.0 - 0.3 / np.maximum(margin, 1.0), 0.5 * margin)
        return Verdicts(
            np.where(found, FINDING, CLEAR).astype(np.int8),
            score,
            window.onset_of("open_requests"),
            {
                "open_requests": window["open_requests"],
                "oldest_open_s": window["oldest_open_s"],
                "oldest_open_steps": window["oldest_open_steps"],
                "full_steps": window["full_steps"],
                "active_streams": window["active_streams"],
            },
        )
