"""Congestion as a network says it: marked packets and notifications, and the link that explains them.

Switches mark packets that meet a queue; a RoCE receiver answers marks with notifications to the sender. A
pair is under pressure where either is far above what is usual for it. The link whose direction has all such
pairs, and only those, has the queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

import numpy as np

from skewscope.core.features import FeatureColumn, FeatureRows
from skewscope.core.tables import Array
from skewscope.features.reference import LEARN, Reference
from skewscope.features.transport import PairRows

PRESSURE = {
    "marked_share": FeatureColumn("1", "packets marked as congested over packets, in the worse direction"),
    "notified_hz": FeatureColumn("Hz", "congestion notifications about it, in the worse direction"),
    "marked_fit": FeatureColumn(
        "1", "share of the pairs of that direction under pressure, times share of all such pairs"
    ),
}

RECENT = 10
"""Windows over which marks are counted (1 s)."""

LEAST_MARKS = 10
"""Marks or notifications in that time that are worth a thought."""

MORE = 3.0
"""Times what is usual for a pair, from which on it is under pressure."""

FLOOR = 0.01
"""Least scale of what is usual: a mark or a notification in a hundred packets."""

DOUBT = 0.25
"""Pairs added to a host's own in its share, as for delays: one pair alone accuses neither end for sure."""


class Pressure:
    """Keeps the counts of each pair of hosts."""

    def __init__(self) -> None:
        self._recent: dict[tuple[int, int], deque[tuple[float, float, float]]] = {}
        self._usual = Reference()

    def write(
        self, rows: FeatureRows, hosts: list[int], inner: Mapping[tuple[int, int], int], pairs: PairRows,
        window_s: float,
    ) -> None:  # fmt: skip
        """Fill the columns of each host's link; inner: pair of address ids -> row of `pairs`."""
        for key, i in inner.items():
            counts = tuple(float(pairs.columns[n][i]) for n in ("segments", "ce_marks", "notified"))
            self._recent.setdefault(key, deque(maxlen=RECENT)).append((counts[0], counts[1], counts[2]))
        sums = {key: np.sum(self._recent[key], axis=0) for key in inner}
        active = {key: s for key, s in sums.items() if s[0] > 0}
        pressed = {key for key, s in active.items() if self._pressed(key, s)}
        for name in PRESSURE:
            rows.columns[name][:] = 0.0
        if not pressed:
            return
        for i, h in enumerate(hosts):
            for end in (0, 1):
                mine = [key for key in active if key[end] == h]
                hit = [key for key in mine if key in pressed]
                fit = len(hit) ** 2 / ((len(mine) + DOUBT) * len(pressed))
                if fit > rows.columns["marked_fit"][i]:
                    packets, marks, told = np.sum([active[key] for key in hit], axis=0)
                    rows.columns["marked_fit"][i] = fit
                    rows.columns["marked_share"][i] = marks / packets
                    rows.columns["notified_hz"][i] = told / (RECENT * window_s)

    def _pressed(self, key: tuple[int, int], sums: Array) -> bool:
        """Tell whether a pair has far more marks or notifications than usual; and learn what is."""
        found = False
        for name, count in (("marks", sums[1]), ("told", sums[2])):
            share = float(count / sums[0])
            usual, scale = self._usual.get((key, name))
            known = self._usual.size((key, name)) >= LEARN
            limit = max(MORE * usual, usual + 6.0 * max(scale, FLOOR))
            over = known and count >= LEAST_MARKS and share > limit
            found = found or over
            if not over:
                self._usual.learn((key, name), [share], FLOOR)
        return found
