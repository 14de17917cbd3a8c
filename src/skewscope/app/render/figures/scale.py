"""Axes: round tick positions, and positions as shares of the width."""

from __future__ import annotations

import math
from dataclasses import dataclass

from skewscope.app.render.units import seconds

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Tick:
    """A tick: position in percent of the axis, and its label."""

    at: float
    label: str


def step_for(span: float, wanted: int) -> float:
    """Return a round step that gives about so many ticks over a span."""
    if span <= 0 or not math.isfinite(span):
        return 1.0
    raw = span / max(1, wanted)
    power = 10.0 ** math.floor(math.log10(raw))
    return min((s * power for s in _STEPS), key=lambda step: abs(math.log(step / raw)))


def time_ticks(start_s: float, end_s: float, wanted: int = 5, sign: bool = False) -> list[Tick]:
    """Return ticks for a time axis in seconds; with `sign` labels read "+31 s"."""
    span = end_s - start_s
    if span <= 0:
        return []
    step = step_for(span, wanted)
    first = math.ceil(start_s / step - 1e-9)
    ticks = []
    for k in range(first, first + wanted * 3):
        value = k * step
        if value > end_s + span * 1e-9:
            break
        text = seconds(value) if abs(value) > step / 1e6 else "0"
        ticks.append(
            Tick(round((value - start_s) / span * 100, 3), f"+{text}" if sign and value > 0 else text)
        )
    return ticks


def share(value: float, start: float, end: float, full: float = 1000.0) -> float:
    """Return where a value lies between start and end, 0..full, clipped."""
    if end <= start:
        return 0.0
    return round(min(max((value - start) / (end - start), 0.0), 1.0) * full, 2)
