"""A host sends a model's worth of bytes to an outsider.

Symptom: a long upload from a host that otherwise computes and answers.
Signal: bytes sent to a peer that is no rank, no endpoint and no client (`foreign_bytes`), at a sustained rate
    (`foreign_bps` over a second, `foreign_s` since it began).
Why these thresholds: see entry.toml.
Looks like: c49 (weights come in), c09 (bulk that fills a port, whoever gets it), a backup.
Blind to: a peer that has a part in the cluster (a client may carry away what it is answered); a transfer that
    is there when the capture begins; an upload below 5 Mbit/s, or spread over many peers; who the peer is.
Cost: a few array operations per window; no state.
References: docs/conditions c50.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window

SHOWN = ("foreign_bytes", "foreign_bps", "foreign_s", "foreign_share")


class Detector:
    """Enough bytes, at a sustained rate, to somebody without a part."""

    STATE: dict[str, float] = {}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every host of one window."""
        p = self._params
        found = (window["foreign_bytes"] >= p.min_bytes) & (window["foreign_bps"] >= p.min_bps)
        found &= window["foreign_s"] >= p.min_s
        volume = np.log10(np.maximum(window["foreign_bytes"] / p.min_bytes, 1.0))
        return Verdicts(
            np.where(found, FINDING, CLEAR).astype(np.int8),
            np.where(found, np.minimum(0.99, 0.85 + 0.05 * volume), 0.0),
            window.onset_of("foreign_bytes"),
            {n: window[n] for n in SHOWN},
        )
