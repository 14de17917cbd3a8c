"""References that a fault does not teach to itself: robust location and scale per key."""

from __future__ import annotations

from collections import deque

import numpy as np

from skewscope.core.tables import Array

HISTORY = 64
"""Accepted samples kept per key: enough for a stable median, few enough to follow a slow drift."""

LEARN = 3
"""Samples before a reference is used at all: a baseline of 0.4 s holds three steps of 100 ms."""

GATE = 6.0
"""Samples further than this many scales from the median are kept out of the reference."""

RELEARN = 512
"""After this many rejected samples in a row the level is the new normal (an upgrade, another model)."""

MAX_KEYS = 1 << 16


class Reference:
    """Median and scale per key over accepted samples; samples beyond the gate are not learned.

    floor: least scale, in the unit of the samples, below which a difference is not worth a gate.
    """

    def __init__(self) -> None:
        self._history: dict[object, deque[float]] = {}
        self._rejected: dict[object, int] = {}
        self._summary: dict[object, tuple[float, float]] = {}

    def get(self, key: object) -> tuple[float, float]:
        """Return (median, scale) of a key, NaN while fewer than LEARN samples are known."""
        return self._summary.get(key, (float("nan"), float("nan")))

    def size(self, key: object) -> int:
        """Return how many accepted samples a key has."""
        return len(self._history.get(key, ()))

    def learn(self, key: object, samples: Array, floor: float) -> None:
        """Absorb samples float64 (n,) of one key in event-time order."""
        history = self._history.get(key)
        if history is None:
            if len(self._history) >= MAX_KEYS:
                return
            history = self._history[key] = deque(maxlen=HISTORY)
        median, scale = self.get(key)
        for value in samples[np.isfinite(samples)][-HISTORY:]:
            if len(history) >= LEARN and abs(value - median) > GATE * max(scale, floor):
                count = self._rejected.get(key, 0) + 1
                if count > RELEARN:
                    history.clear()
                    count = 0
                self._rejected[key] = count
                continue
            self._rejected[key] = 0
            history.append(float(value))
            if len(history) <= LEARN:
                median, scale = _summary(history)
        if len(history) >= LEARN:
            self._summary[key] = _summary(history)


def _summary(history: deque[float]) -> tuple[float, float]:
    values = np.fromiter(history, dtype=np.float64)
    median = float(np.median(values))
    return median, float(1.4826 * np.median(np.abs(values - median)))
