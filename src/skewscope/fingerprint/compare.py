"""Two collections side by side: equal bits, distances, flips, and how variable one is with itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skewscope.fingerprint.collection import Collection

TOP = 8
"""Best tokens over which distances are taken: all interfaces give them, and their values are large."""


@dataclass(frozen=True)
class Pairing:
    """Rows that two collections have in common, one per (probe, position).

    equal: same tokens and same log-probabilities, bit by bit; distance: mean |difference| of the best
    tokens' log-probabilities, nat, infinite where they share none; flipped: another best token.
    """

    probes: list[str]
    equal: NDArray[np.bool_]
    distance: NDArray[np.float64]
    flipped: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.probes)


def pair(
    a: Collection, b: Collection, *, repeats: tuple[int, int] = (0, 0), decimals: int | None = None
) -> Pairing:
    """Compare one repetition of each; `decimals` rounds log-probabilities first, as some interfaces do."""
    left, right = a.rows_of_repeat(repeats[0]), b.rows_of_repeat(repeats[1])
    keys = sorted(left.keys() & right.keys())
    i, j = (np.array([side[k] for k in keys], np.int64) for side in (left, right))
    width = min(a.tokens.shape[1], b.tokens.shape[1])
    if not keys or not width:
        none = np.zeros(0)
        return Pairing([], none.astype(bool), none, none.astype(bool))
    x, y = a.logprobs[i, :width], b.logprobs[j, :width]
    if decimals is not None:
        x, y = np.round(x, decimals), np.round(y, decimals)
    same_value = (x == y) | (np.isnan(x) & np.isnan(y))
    equal = same_value.all(axis=1)
    if decimals is None:  # rounded values tie, and ties come in any order
        equal &= (a.tokens[i, :width] == b.tokens[j, :width]).all(axis=1)
    return Pairing(
        [k[0] for k in keys],
        equal,
        _distances(a.tokens[i, :width], x, b.tokens[j, :width], y),
        a.tokens[i, 0] != b.tokens[j, 0],
    )


def _distances(
    left: NDArray[np.int64], x: NDArray[np.float32], right: NDArray[np.int64], y: NDArray[np.float32]
) -> NDArray[np.float64]:
    """Mean over the best tokens of the left side that the right side lists too."""
    best = slice(0, min(TOP, left.shape[1]))
    where = left[:, best, None] == right[:, None, :]
    there = where.any(axis=2) & (left[:, best] != -1)
    found = np.take_along_axis(y, where.argmax(axis=2), axis=1)
    apart = np.where(there, np.abs(x[:, best].astype(np.float64) - found), 0.0)
    count = there.sum(axis=1)
    return np.where(count > 0, apart.sum(axis=1) / np.maximum(count, 1), np.inf)


@dataclass(frozen=True)
class Variability:
    """How a platform differs from itself between repetitions.

    count_ratio: share of values that differ (V_c), relative: mean |difference| / |value| (V_ermv), both
    as in Shanmugavelu et al. (arXiv 2408.05148); unequal: share of positions with any difference;
    distance: median over those positions; flips: share with another best token.
    """

    pairs: int
    count_ratio: float
    relative: float
    unequal: float
    distance: float
    flips: float

    @property
    def measured(self) -> bool:
        """Whether there was anything to compare; without repetitions nothing is known."""
        return self.pairs > 0


def variability(collection: Collection) -> Variability:
    """Compare every repetition with the first one."""
    first = collection.rows_of_repeat(0)
    count, relative, pairings = [], [], []
    for repeat in sorted({int(r) for r in collection.repeats} - {0}):
        other = collection.rows_of_repeat(repeat)
        keys = sorted(first.keys() & other.keys())
        if not keys:
            continue
        x, y = (collection.logprobs[[side[k] for k in keys]] for side in (first, other))
        both = ~(np.isnan(x) | np.isnan(y)) & (x != 0)
        count.append(float(np.mean((x != y)[both])) if both.any() else 0.0)
        relative.append(float(np.mean(np.abs((x - y)[both] / x[both]))) if both.any() else 0.0)
        pairings.append(pair(collection, collection, repeats=(0, repeat)))
    if not pairings:
        return Variability(0, 0.0, 0.0, 0.0, 0.0, 0.0)
    equal = np.concatenate([p.equal for p in pairings])
    distance = np.concatenate([p.distance for p in pairings])[~equal]
    flipped = np.concatenate([p.flipped for p in pairings])
    return Variability(
        equal.size,
        float(np.mean(count)),
        float(np.mean(relative)),
        float(np.mean(~equal)),
        float(np.median(distance)) if distance.size else 0.0,
        float(np.mean(flipped)),
    )


def ulp_distances(x: NDArray[np.float32], y: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return how many float32 numbers lie between x and y; -1 where either is not finite."""
    ordered = []
    for values in (x, y):
        bits = np.ascontiguousarray(values, np.float32).view(np.int32).astype(np.int64)
        ordered.append(np.where(bits < 0, -(bits & 0x7FFFFFFF), bits))
    finite = np.isfinite(x) & np.isfinite(y)
    return np.where(finite, np.abs(ordered[0] - ordered[1]), -1)


def ulp_histogram(x: NDArray[np.float32], y: NDArray[np.float32]) -> list[int]:
    """Return counts of ulp distances 0, 1, 2-3, 4-7, ...: element i > 0 counts [2^(i-1), 2^i)."""
    distances = ulp_distances(x, y)
    distances = distances[distances >= 0]
    bins = np.zeros(distances.shape, np.int64)
    some = distances > 0
    bins[some] = np.frexp(distances[some].astype(np.float64))[1]
    return [int(n) for n in np.bincount(bins.ravel(), minlength=1)]


def top_gaps(collection: Collection) -> NDArray[np.float32]:
    """Return log-probability of the best minus that of the second token, per row with two tokens."""
    if collection.logprobs.shape[1] < 2:
        return np.zeros(0, np.float32)
    gaps: NDArray[np.float32] = collection.logprobs[:, 0] - collection.logprobs[:, 1]
    return gaps[np.isfinite(gaps)]
