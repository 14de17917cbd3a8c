"""What is usual for each stage of a chain: stages are given unequal work, so each has its own past."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from skewscope.core.tables import Array
from skewscope.features.reference import Reference
from skewscope.features.rounds import Rounds

FLOOR_SHARE = 0.03
"""Least scale of a stage's time, as a share of it: a sample six of these off is not learned as usual."""


class StagePast:
    """Compares the time that a stage held a micro-batch with its own past at equal size."""

    def __init__(self) -> None:
        self._past = Reference()

    def excess(self, r: Rounds, busy: Array, chained: Array, excess: Array) -> None:
        """Write to excess float64 (n,) (s) of the rows marked in chained bool (n,); busy float64 (n,) (s).

        What the other stages of the same micro-batch took more or less than they usually do is taken off: a
        larger batch takes longer everywhere.
        """
        rows = np.flatnonzero(chained)
        usual = np.full(len(busy), np.nan)
        for row in rows.tolist():
            usual[row] = self._usual(r, row, float(busy[row]))
        growth = busy / usual
        for lo, hi in pairwise(np.append(r.start, len(busy)).tolist()):
            if not chained[lo]:
                continue
            for j in range(lo, hi):
                others = np.delete(growth[lo:hi], j - lo)
                others = others[np.isfinite(others)]
                common = float(np.median(others)) if len(others) else 1.0
                excess[j] = busy[j] - usual[j] * common

    def _usual(self, r: Rounds, row: int, busy: float) -> float:
        """Return what is usual for the stage at this size of micro-batch (s), NaN unknown; and learn."""
        stage = (int(r.member[row]), int(r.matched[row]))
        sized = (*stage, int(r.largest[row]).bit_length())
        usual = self._past.get(sized)[0]
        usual = usual if np.isfinite(usual) else self._past.get(stage)[0]
        for key in (stage, sized):
            self._past.learn(key, [busy], FLOOR_SHARE * usual if usual > 0 else busy)
        return usual
