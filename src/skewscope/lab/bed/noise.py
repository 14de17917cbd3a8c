"""How long a rank computes: a spread of its own, a factor the whole step shares, and rare outliers.

A metronome would make every detector look good, so the bed has three levels of noise. Seeded draws only.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True)
class Level:
    """One level of noise; spreads are sigmas of a log-normal factor."""

    own: float
    """Spread of one rank's compute time from one collective to the next."""
    common: float
    """Spread of the step, the same for all ranks."""
    outlier_ratio: float
    """Share of computations that take much longer for no reason that can be named."""
    outlier_most: float
    """Largest factor of an outlier."""


LEVELS = {
    "none": Level(0.0, 0.0, 0.0, 1.0),
    "low": Level(0.05, 0.03, 0.0003, 2.0),
    "mid": Level(0.10, 0.06, 0.001, 3.0),
    "high": Level(0.15, 0.10, 0.003, 4.0),
}


class Noise:
    """Factors on compute time of one rank. The same seed gives the same factors, run after run."""

    def __init__(self, level: str, seed: int, rank: int) -> None:
        self._level = LEVELS[level]
        self._seed, self._rank = seed, rank
        self.restart()

    def restart(self) -> None:
        """Begin the same series again."""
        self._own = Random(f"own {self._seed} {self._rank}")
        self._shared = Random(f"common {self._seed}")
        self._step = 1.0

    def next_step(self) -> None:
        """Draw the factor that all ranks share in this step."""
        self._step = self._shared.lognormvariate(0.0, self._level.common) if self._level.common else 1.0

    def factor(self) -> float:
        """Draw the factor of one computation."""
        level = self._level
        factor = self._step * (self._own.lognormvariate(0.0, level.own) if level.own else 1.0)
        if self._own.random() < level.outlier_ratio:
            factor *= self._own.uniform(1.5, level.outlier_most)
        return factor
