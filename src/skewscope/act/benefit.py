"""What an action should gain, what it did gain, and what was learned from that.

The model is the simplest one that can be checked: a pool's mean of a time is the mean over its endpoints,
weighted by their share of the requests. An endpoint that is r times as slow as usual and has the share s
makes the mean 1 + s (r - 1) of the usual one; moving it to a share s' leaves 1 + s' (r - 1).
"""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from skewscope.act.settings import Verify
from skewscope.core.action import ExecutedAction

HELPED, WEAK, NO_HELP, HARMED = "helped", "weak", "no help", "harmed"
ENOUGH_TO_LEARN = 3
"""Actions with a known effect before their ratio to the prediction is believed."""


def share_after(endpoints: int, weight_ratio: float) -> float:
    """Return the share of one of `endpoints` equal ones whose weight is multiplied by `weight_ratio`."""
    return weight_ratio / (endpoints - 1 + weight_ratio) if endpoints > 1 else 1.0


def predict(slow_ratio: float, endpoints: int, weight_ratio: float) -> float:
    """Return the share by which the pool's mean falls; 0 where nothing is slower than usual."""
    excess = max(slow_ratio - 1.0, 0.0)
    before = 1.0 + excess / endpoints
    after = 1.0 + excess * share_after(endpoints, weight_ratio)
    return 1.0 - after / before


def learned(actions: Iterable[ExecutedAction], cause: str, verb: str) -> float:
    """Return the factor on predictions for one cause and verb: the median of observed over predicted.

    Within 0 and 2, and 1 until enough such actions were judged.
    """
    ratios = [
        a.observed_ratio / a.predicted_ratio
        for a in actions
        if a.observed_ratio is not None and a.predicted_ratio > 0 and (a.cause, a.verb) == (cause, verb)
    ]
    return min(max(median(ratios), 0.0), 2.0) if len(ratios) >= ENOUGH_TO_LEARN else 1.0


def observed(before: float, after: float) -> float:
    """Return the share by which a measured mean fell; negative where it rose."""
    return 1.0 - after / before


def verdict(predicted_ratio: float, observed_ratio: float, limits: Verify) -> str:
    """Return helped, weak, no help or harmed: what to make of the observed effect."""
    if observed_ratio >= limits.helped_ratio * predicted_ratio:
        return HELPED
    if observed_ratio < -limits.weak_ratio * predicted_ratio:
        return HARMED
    return WEAK if observed_ratio >= limits.weak_ratio * predicted_ratio else NO_HELP
