"""Equivalence classes of platforms: which ones no answer tells apart, and how far the others are.

A class is the most that outputs can show. Members were bit-equal at every common position; members of
different classes differ somewhere. How a class varies with itself is measured before anything else: from
repetitions, and from members that are the same platform recorded twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from skewscope.fingerprint.collection import Collection
from skewscope.fingerprint.compare import pair, variability

LEAST_DISTANCE = 2.0**-30
"""Distances below this count as this: smaller than the last bit of any log-probability."""


@dataclass
class Spread:
    """Log2 of distances at positions that differ: how many, mean, standard deviation."""

    count: int = 0
    mean: float = 0.0
    deviation: float = 1.0

    @staticmethod
    def of(distances: NDArray[np.float64]) -> Spread:
        """Summarise distances; infinite ones (no common token) count as the largest finite one."""
        if not distances.size:
            return Spread()
        finite = distances[np.isfinite(distances)]
        top = float(finite.max()) if finite.size else 10.0
        size = np.log2(np.clip(np.where(np.isfinite(distances), distances, top), LEAST_DISTANCE, None))
        return Spread(int(size.size), float(size.mean()), max(float(size.std()), 0.25))


@dataclass
class Platforms:
    """One class: its first member's answers, its members, and its variability.

    pairs, equal: positions compared with itself, and how many were bit-equal; noise: distances of the
    others.
    """

    answers: Collection
    members: list[str] = field(default_factory=list)
    pairs: int = 0
    equal: int = 0
    noise: Spread = field(default_factory=Spread)

    @property
    def name(self) -> str:
        """The first member's name."""
        return self.members[0]


def classify(collections: Sequence[Collection], decimals: int | None = None) -> list[Platforms]:
    """Group collections into classes of bit-equal answers, in order of appearance.

    A collection joins a class where all common positions of their first repetitions are equal. A noisy
    platform forms a class of its own per recording; `enrol` names them together instead.
    """
    found: list[Platforms] = []
    for one in collections:
        home = None
        for group in found:
            pairing = pair(group.answers, one, decimals=decimals)
            if len(pairing) and pairing.equal.all():
                home = group
                break
        if home is None:
            home = Platforms(one)
            found.append(home)
        else:
            both = pair(home.answers, one, decimals=decimals)
            home.pairs += len(both)
            home.equal += int(both.equal.sum())
        home.members.append(one.name)
        _add_repetitions(home, one, decimals)
    return found


def _add_repetitions(group: Platforms, one: Collection, decimals: int | None) -> None:
    own = variability(one)
    if not own.measured:
        return
    repeats = sorted({int(r) for r in one.repeats} - {0})
    pairings = [pair(one, one, repeats=(0, r), decimals=decimals) for r in repeats]
    equal = np.concatenate([p.equal for p in pairings])
    distance = np.concatenate([p.distance for p in pairings])
    group.pairs += equal.size
    group.equal += int(equal.sum())
    if (~equal).any():
        group.noise = Spread.of(distance[~equal])


@dataclass(frozen=True)
class Separation:
    """How many of the classes a number of positions tells apart, taken in the best order found."""

    classes: int
    order: list[str]
    separated: list[int]


def choose_probes(groups: Sequence[Platforms], most: int = 16, decimals: int | None = None) -> Separation:
    """Order probes by measured discrimination: each next one separates the most pairs still together.

    `separated[i]` is the number of classes told apart by the first i + 1 probes: by equality of what they
    answered, all positions of a probe together.
    """
    probes = sorted({key[0] for group in groups for key in group.answers.keys})
    codes = {p: _codes(groups, p, decimals) for p in probes}
    together = np.zeros(len(groups), np.int64)
    order: list[str] = []
    separated: list[int] = []
    while codes and len(order) < most:
        joined = {
            p: np.unique(np.stack([together, c]), axis=1, return_inverse=True)[1] for p, c in codes.items()
        }
        best = max(joined, key=lambda p: (-_pairs_together(joined[p]), -probes.index(p)))
        together = joined[best].ravel()
        del codes[best]
        order.append(best)
        separated.append(int(np.unique(together).size))
        if separated[-1] == len(groups):
            break
    return Separation(len(groups), order, separated)


def _pairs_together(codes: NDArray[np.int64]) -> int:
    counts = np.bincount(codes.ravel())
    return int((counts * (counts - 1) // 2).sum())


def _codes(groups: Sequence[Platforms], probe: str, decimals: int | None) -> NDArray[np.int64]:
    """Return one number per class: equal numbers, equal answers to this probe."""
    seen: dict[bytes, int] = {}
    found = []
    for group in groups:
        rows = [i for k, i in sorted(group.answers.rows_of_repeat(0).items()) if k[0] == probe]
        values = group.answers.logprobs[rows]
        if decimals is None:
            text = values.tobytes() + group.answers.tokens[rows].tobytes()
        else:
            text = np.round(values, decimals).tobytes()
        found.append(seen.setdefault(text, len(seen)))
    return np.array(found, np.int64)
