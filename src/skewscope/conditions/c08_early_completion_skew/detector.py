"""Streams of one batch end far apart, and the freed slots stay empty although requests wait.

Symptom: running streams shrink one by one, steps keep their pace, and waiting requests get nothing.
Signal: over `empty_steps` engine steps requests wait, the running streams are well below their peak, and no
    response began, after streams have ended (`freed_slots`).
Why these thresholds: see entry.toml.
Looks like: low demand (nothing waits), c01 (all slots are taken), c30 (no steps at all).
Blind to: an engine whose batch never was larger than the one that the capture began with. No data until
    the endpoint sent anything.
Cost: a few comparisons per endpoint and window; no state.
References: docs/conditions c08.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window


class Detector:
    """Judges whether freed slots are used."""

    STATE: dict[str, float] = {}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every endpoint of one window."""
        p = self._params
        patience = np.maximum(p.min_empty_steps, p.patience * window["ttft_ref_steps"])
        margin = np.minimum.reduce(
            [
                window["open_requests"] / p.min_open_requests,
                window["freed_slots"] / p.min_freed_slots,
                window["empty_steps"] / patience,
            ]
        )
        margin = np.where((window["gateway"] > 0) | (window["active_streams"] == 0), 0.0, margin)
        found = margin >= 1.0
        score = np.where(found, 1.0 - 0.3 / np.maximum(margin, 1.0), 0.5 * np.maximum(margin, 0.0))
        return Verdicts(
            np.where(found, FINDING, CLEAR).astype(np.int8),
            score,
            window.onset_of("stall_steps"),
            {
                "active_share": window["active_share"],
                "open_requests": window["open_requests"],
                "empty_steps": window["empty_steps"],
                "freed_slots": window["freed_slots"],
            },
        )
