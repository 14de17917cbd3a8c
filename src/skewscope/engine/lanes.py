"""Swim lanes of rounds: what each member did, for people to look at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from skewscope.core.directory import Directory
from skewscope.core.report import Incident, Lanes, LaneSpan
from skewscope.core.tables import Array
from skewscope.engine.history import History
from skewscope.features.rounds import Rounds

ROUNDS_SHOWN = 3
MIN_INSIDE_SHARE = 0.05
"""A stop inside a round shorter than this share of the picture is not drawn apart."""


def lanes(
    history: History, directory: Directory, incidents: Sequence[Incident], members: dict[str, int]
) -> list[Lanes]:
    """Return a usual stretch of rounds of each group, and its slowest one from the first onset on.

    members: address -> group id. Without an incident there is the usual stretch only.
    """
    out: list[Lanes] = []
    onset = min((i.onset_ns for i in incidents), default=None)
    groups = sorted(set(members.values()))
    for g in groups:
        rounds = _Flat(history.rounds_near(g))
        if len(rounds.first) <= ROUNDS_SHOWN:
            continue
        took = rounds.took()
        before = np.ones(len(took), dtype=np.bool_)
        if onset is not None:
            before = rounds.first[:-ROUNDS_SHOWN] < onset
        if before.any():
            usual = np.flatnonzero(before)[np.argsort(took[before])[np.count_nonzero(before) // 2]]
            out.append(rounds.draw(int(usual), "usual", directory, g))
        during = ~before
        if incidents and during.any():
            worst = np.flatnonzero(during)[np.argmax(took[during])]
            out.append(rounds.draw(int(worst), "during the incident", directory, g))
    return out


class _Flat:
    """Rounds of one group, joined and addressable by number."""

    def __init__(self, parts: Sequence[Rounds]) -> None:
        names = ("member", "entry", "own", "own_from", "inside", "inside_end", "end", "frame", "key")
        none = [np.zeros(0, dtype=np.int64)]
        self.col: dict[str, Array] = {
            n: np.concatenate([getattr(p, n) for p in parts] or none) for n in names
        }
        key = self.col["key"]
        fresh = np.ones(len(key), dtype=np.bool_)
        fresh[1:] = key[1:] != key[:-1]
        self.start = np.append(np.flatnonzero(fresh), len(key))
        self.first = np.array([self.col["entry"][a] for a in self.start[:-1]], dtype=np.int64)

    def took(self) -> Array:
        """Return the time of ROUNDS_SHOWN rounds from each on (ns)."""
        return self.first[ROUNDS_SHOWN:] - self.first[:-ROUNDS_SHOWN]

    def draw(self, number: int, label: str, directory: Directory, group: int) -> Lanes:
        """Return the lanes of ROUNDS_SHOWN rounds from `number` on."""
        c, names = self.col, directory.addresses
        lo, hi = self.start[number], self.start[number + ROUNDS_SHOWN]
        start = int(min(np.where(c["own_from"][lo:hi] > 0, c["own_from"][lo:hi], c["entry"][lo:hi])))
        stop = int(c["end"][lo:hi].max())
        spans: list[LaneSpan] = []
        for r in range(number, number + ROUNDS_SHOWN):
            rows = np.arange(self.start[r], self.start[r + 1])
            last_entry = int(c["entry"][rows].max())
            for row in rows:
                spans += self._spans(int(row), last_entry, stop - start, names, directory)
        return Lanes(names[group], label, start, stop, spans)

    def _spans(
        self, row: int, last_entry: int, width: int, names: list[str], directory: Directory
    ) -> list[LaneSpan]:
        c = self.col
        member, entry, end = names[int(c["member"][row])], int(c["entry"][row]), int(c["end"][row])
        frame = int(c["frame"][row])
        where = (directory.taps[frame >> 48].path, frame & 0xFFFFFFFFFFFF)
        out = []
        if c["own"][row] > 0:
            out.append(LaneSpan(member, "own", int(c["own_from"][row]), entry, where))
        if last_entry > entry:
            out.append(LaneSpan(member, "wait", entry, min(last_entry, end), where))
        inside_end, inside = int(c["inside_end"][row]), int(c["inside"][row])
        begin = max(entry, last_entry)
        if inside > MIN_INSIDE_SHARE * width:
            out.append(LaneSpan(member, "inside", inside_end - inside, inside_end, where))
        if end > begin:
            out.append(LaneSpan(member, "transit", begin, end, where))
        return out
