"""Several processes of one host are late together while other hosts are not.

Symptom: unrelated processes at one address slow down in the same windows.
Signal: number of processes of a host that were late in the window, of at least two that were judged.
Why these thresholds: see entry.toml.
Looks like: c20 (one process only), c23 (the host's link: transit grew), c38 (one process stops).
Blind to: hosts with a single process in view: there c20 names the rank and the cause stays open. No data
    then.
Cost: a few array operations per window; one number per host.
References: docs/conditions c45.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.condition import CLEAR, FINDING, Params, Verdicts, Window


class Detector:
    """Counts windows in which several processes of a host were late together."""

    STATE: dict[str, float] = {"since": 0.0}

    def __init__(self, params: Params) -> None:
        self._params = params

    def step(self, window: Window) -> Verdicts:
        """Judge every host of one window."""
        p = self._params
        late = window["late_processes"]
        together = (late >= p.min_late) & (late >= p.min_share * window["processes"])
        since = window.state["since"]
        onset = window.onset_of("late_processes").astype(np.float64)
        since[window.slot] = np.where(together & (since[window.slot] == 0), onset, since[window.slot])
        since[window.slot] = np.where(together, since[window.slot], 0.0)
        return Verdicts(
            np.where(together, FINDING, CLEAR).astype(np.int8),
            np.where(together, 1.0 - 0.5 ** window["late_processes"], 0.0),
            np.where(since[window.slot] > 0, since[window.slot], onset).astype(np.int64),
            {"late_processes": window["late_processes"], "processes": window["processes"]},
        )
