"""Members that are now and then late from their first rounds on, where nothing is usual yet.

A fixed order of entry and an uneven split of work make a member later than its peers in every round. A
CPU quota that runs out once per period, or a neighbour that takes the core at times, make it late in
some rounds and leave it level with its peers in the others. That is seen without any reference: no
other member of the group shows it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from math import isfinite

import numpy as np

from skewscope.core.jit import njit
from skewscope.core.tables import Array

RUN_UP = 32
"""Latest rounds that are judged. A group whose first ones were steady is left to the references."""

ENOUGH = 16
"""Rounds before anything is said: a fifth of them is three."""

LATE, LEVEL = 0.12, 0.08
"""Excess over peers, in usual rounds, beyond which a member is late (as in `members`) and within which it
is level with them; what lies between says nothing."""

MOST = 2.0
"""Usual rounds that one round counts at most, so that a single pause is not a habit."""

ALONE = 0.5
"""Neither may another member show this share of the same, nor may the others differ by it among
themselves: what several show is the work's, or that of a host whose processes come and go."""

NOBODY: tuple[int, tuple[float, ...], int] = (-1, (), 0)

COLUMNS = ("unsteady_ratio", "unsteady_late_share", "unsteady_level_share")


class Dispersion:
    """Excess over peers of each member from its first round on, for as long as it is unsteady.

    Only rounds of one kind are compared with each other: an announcement costs nobody anything, so a
    member with more work would be level there and late elsewhere.
    """

    def __init__(self) -> None:
        self._excess: dict[tuple[int, int], deque[float]] = {}
        self._spread: dict[tuple[int, int], deque[float]] = {}
        self._when: dict[tuple[int, int], deque[int]] = {}
        self._kinds: set[int] = set()
        self._settled: set[int] = set()

    def wants(self, member: int) -> bool:
        """Return whether a member is still watched."""
        return member not in self._settled

    def learn(self, member: int, kind: Array, excess: Array, spread: Array, ts_ns: Array) -> None:
        """Take a member's next rounds, all of shape (n,).

        kind int64; excess float64 over its peers and spread float64 among them in s, NaN = unknown.
        """
        rows = zip(kind.tolist(), excess.tolist(), spread.tolist(), ts_ns.tolist(), strict=True)
        for k, over, apart, ts in rows:
            if not isfinite(over):
                continue
            key = (member, k)
            if key not in self._excess:
                self._kinds.add(k)
                self._excess[key], self._spread[key] = deque(maxlen=RUN_UP), deque(maxlen=RUN_UP)
                self._when[key] = deque(maxlen=RUN_UP)
            self._excess[key].append(over)
            self._spread[key].append(apart)
            self._when[key].append(ts)

    def judge(self, team: Sequence[int], round_s: float) -> tuple[int, tuple[float, ...], int]:
        """Return (the member that alone is unsteady, its values of COLUMNS, since when in ns).

        (-1, (), 0) where none is, where no two members can be compared, or too few rounds were seen.
        """
        if not np.isfinite(round_s):
            return NOBODY
        found = [self._of_kind(team, kind, round_s) for kind in sorted(self._kinds)]
        worst = max(found, key=lambda f: f[1][:1], default=NOBODY)
        if worst is NOBODY and any(
            len(self._excess.get((m, k), ())) == RUN_UP for m in team for k in self._kinds
        ):
            self._settled.update(team)
            for key in [key for key in self._excess if key[0] in self._settled]:
                del self._excess[key], self._spread[key], self._when[key]
        return worst

    def _of_kind(self, team: Sequence[int], kind: int, round_s: float) -> tuple[int, tuple[float, ...], int]:
        rounds = {m: np.array(self._excess.get((m, kind), ())) for m in team}
        ratio = {
            m: float(np.clip(x, 0.0, MOST * round_s).mean() / round_s)
            for m, x in rounds.items()
            if len(x) >= ENOUGH // 2
        }
        order = sorted(ratio, key=lambda m: -ratio[m])
        if len(order) < 2 or len(rounds[order[0]]) < ENOUGH:
            return NOBODY
        top, second = order[:2]
        spread = np.array(self._spread[top, kind]) / round_s
        others = max(ratio[second], np.nanmean(spread) if np.isfinite(spread).any() else 0.0)
        if others > ALONE * ratio[top] or ratio[top] < LATE:
            return NOBODY
        share = rounds[top] / round_s
        late = np.flatnonzero(share > LATE)
        level = float((np.abs(share) <= LEVEL).mean())
        return top, (ratio[top], len(late) / len(share), level), self._when[top, kind][late[0]]


def among_others(busy: Array, start: Array) -> tuple[Array, Array]:
    """Return per row (whether a peer's time is known, how far the other members' times lie apart in s).

    busy float64 (n,) in s, NaN unknown; start int64 (rounds,): first row of each round.
    """
    compared, spread = np.zeros(len(busy), dtype=np.bool_), np.full(len(busy), np.nan)
    _among_others(busy, start, compared, spread)
    return compared, spread


@njit
def _among_others(busy: Array, start: Array, compared: Array, spread: Array) -> None:
    for number in range(len(start)):
        lo = start[number]
        hi = start[number + 1] if number + 1 < len(start) else len(busy)
        for j in range(lo, hi):
            least, most, count = np.inf, -np.inf, 0
            for i in range(lo, hi):
                if i != j and np.isfinite(busy[i]):
                    least, most, count = min(least, busy[i]), max(most, busy[i]), count + 1
            compared[j] = count > 0
            if count > 1:
                spread[j] = most - least
