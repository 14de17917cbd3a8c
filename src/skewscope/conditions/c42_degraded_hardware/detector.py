"""A link went away for a while: everything both ways was lost, then it came back.

Symptom: silence on all pairs of one host, with data lost in both directions meanwhile.
Signal: a gap in crossings of a host's link of more than two usual round intervals, in which copies were
    lost in both directions; share of the losses of that time that touch the host.
Why these thresholds: see entry.toml.
Looks like: c30 (nothing is lost: a process stopped), c25 (some packets pass), c47 (small packets pass).
Blind to: defects that only counters show (width, generation, ECC, clocks): they need counter sources. A
    link that does not come back is c30 or c25 until it does.
Cost: a few array operations per window; no state.
References: docs/conditions c42; docs/testbed.md section 7 (link flap).
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window


class Detector:
    """Tells a link that flapped."""

    STATE: dict[str, float] = {}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every link of one window."""
        p = self._params
        found = (window["outage_s"] > 0) & (window["outage_fit"] >= p.min_fit)
        found &= window["outage_smallest_bytes"] <= p.max_smallest_bytes
        return Verdicts(
            np.where(found, FINDING, CLEAR).astype(np.int8),
            np.where(found, window["outage_fit"] * 0.95, 0.0),
            window.onset_of("outage_s"),
            {
                "outage_s": window["outage_s"],
                "outage_fit": window["outage_fit"],
                "lost": window["episode_lost"],
            },
        )
