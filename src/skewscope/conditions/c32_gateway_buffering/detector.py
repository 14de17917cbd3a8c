"""A gateway collects streams and passes them on in blocks.

Symptom: tokens reach clients in bursts, or all at the end, though the engine makes them evenly.
Signal: pieces that came in on the engine's leg of a stream and have not left on the client's leg, as a mean
    over open streams and a second (`held_chunks`), and for how many of the streams (`held_share`).
Why these thresholds: see entry.toml.
Looks like: c06 and c34 (uneven on the engine's leg), c05 (one client's stream), c07 (copies lost to clients).
Blind to: a gateway whose engines' legs are not captured; the first streams of a capture, which teach the
    ratio of the legs' bytes; blocks of one or two pieces.
Cost: a few array operations per window; no state.
References: docs/conditions c32.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window

SHOWN = ("held_share", "held_chunks", "held_s", "streams")


class Detector:
    """Most streams are behind their engines by pieces."""

    STATE: dict[str, float] = {}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every gateway of one window."""
        p = self._params
        found = (window["held_share"] >= p.min_held_share) & (window["held_chunks"] >= p.min_held_chunks)
        score = window["held_share"] * np.minimum(1.0, 0.6 + 0.1 * window["held_chunks"])
        return Verdicts(
            np.where(found, FINDING, CLEAR).astype(np.int8),
            np.where(found, score, 0.0),
            window.onset_of("held_share"),
            {n: window[n] for n in SHOWN},
        )
