"""Classifiers for unpaired traffic: the published one on bits, and ours on residuals and grids.

The published method (HSPI-LD, arXiv 2411.05197) turns each float32 into its 32 bits, scales the features
and trains linear support vector machines one against one. Needs scikit-learn (extra `fingerprint`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skewscope.fingerprint.collection import Collection
from skewscope.fingerprint.grid import step_of, trailing_zeros

Features = NDArray[np.float64]


def bits(values: NDArray[np.float32]) -> Features:
    """Return the 32 bits of every value, sign first: (n, k) -> (n, 32 k)."""
    raw = np.ascontiguousarray(values, np.float32).view(np.uint32)
    shifts = np.arange(31, -1, -1, dtype=np.uint32)
    split = (raw[:, :, None] >> shifts) & np.uint32(1)
    return split.reshape(len(values), -1).astype(np.float64)


def bit_features(collection: Collection) -> Features:
    """Bits of the raw logits where there are any, else of the sorted log-probabilities."""
    values = collection.logits if collection.logits.shape[1] else collection.logprobs
    return bits(np.nan_to_num(values))


def grid_features(collection: Collection) -> Features:
    """Step of the grid, trailing zeros and their spread: what survives log-softmax, per position."""
    steps = step_of(collection.logprobs)
    zeros = trailing_zeros(np.nan_to_num(collection.logprobs))
    coarse = np.log2(np.where(steps > 0, steps, 2.0**-20))
    return np.stack([coarse, zeros.mean(axis=1), zeros.std(axis=1), (zeros > 8).mean(axis=1)], axis=1)


def residual_features(collection: Collection, reference: Collection) -> Features:
    """Describe the errors of logits against an fp64 run of the same prompts, per position.

    The size of the error is a property of the order of summation, whatever the prompt. Rows without a
    counterpart are NaN.
    """
    where = reference.rows_of_repeat(0)
    found = np.full((len(collection), 6), np.nan)
    for i, key in enumerate(collection.keys):
        if key not in where:
            continue
        error = (collection.logits[i].astype(np.float64) - reference.logits[where[key]]).ravel()
        size = np.log2(np.abs(error) + 2.0**-40)
        spread = np.std(error)
        found[i] = (
            np.log2(np.sqrt(np.mean(error**2)) + 2.0**-40),
            np.log2(spread + 2.0**-40),
            np.abs(np.mean(error)) / (spread + 2.0**-40),
            float(np.std(size)),
            np.log2(np.max(np.abs(error)) + 2.0**-40),
            np.mean(error**4) / (spread**4 + 2.0**-120),
        )
    return found


@dataclass(frozen=True)
class Score:
    """Share of right answers on prompts that were not trained on, singly and by vote of several positions."""

    single: float
    vote: float
    positions: int
    votes: int


def pairwise(
    a: Collection, b: Collection, features: Callable[[Collection], Features], *, vote: int = 16, seed: int = 0
) -> Score:
    """Train to tell two platforms apart on half of the prompts, test on the other half.

    Prompts in the test are disjoint from those in training for both classes, so nothing is recognised
    but the platform.
    """
    probes = sorted({k[0] for k in a.keys} | {k[0] for k in b.keys})
    shuffled = np.random.default_rng(seed).permutation(len(probes))
    held = {probes[i] for i in shuffled[: len(probes) // 2]}
    x = np.concatenate([features(a), features(b)])
    y = np.concatenate([np.zeros(len(a), int), np.ones(len(b), int)])
    test = np.array([k[0] in held for k in (*a.keys, *b.keys)])
    usable = np.isfinite(x).all(axis=1)
    model = linear_machine().fit(x[~test & usable], y[~test & usable])
    said, truth = model.predict(x[test & usable]), y[test & usable]
    trained = model.predict(x[~test & usable])
    # A classifier may lean to one side; the vote is cut half-way between what it says of either.
    middle = np.mean([trained[y[~test & usable] == label].mean() for label in (0, 1)])
    votes = []
    for label in (0, 1):
        own = np.random.default_rng(seed).permutation(said[truth == label])
        for start in range(0, len(own) - vote + 1, vote):
            votes.append((own[start : start + vote].mean() > middle) == (label == 1))
    right = said == truth
    return Score(
        float(right.mean()), float(np.mean(votes)) if votes else float("nan"), right.size, len(votes)
    )


def linear_machine() -> Any:
    """Return the published classifier: scaled features, linear machines one against one."""
    from sklearn.multiclass import OneVsOneClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    return make_pipeline(StandardScaler(), OneVsOneClassifier(LinearSVC(max_iter=10_000, random_state=0)))


def many_classes(
    collections: Sequence[Collection], features: Callable[[Collection], Features], seed: int = 0
) -> Score:
    """Train on all classes at once with half of the prompts; return the share of right positions."""
    probes = sorted({k[0] for c in collections for k in c.keys})
    shuffled = np.random.default_rng(seed).permutation(len(probes))
    held = {probes[i] for i in shuffled[: len(probes) // 2]}
    x = np.concatenate([features(c) for c in collections])
    y = np.repeat(np.arange(len(collections)), [len(c) for c in collections])
    test = np.array([k[0] in held for c in collections for k in c.keys])
    usable = np.isfinite(x).all(axis=1)
    model = linear_machine().fit(x[~test & usable], y[~test & usable])
    right = model.predict(x[test & usable]) == y[test & usable]
    return Score(float(right.mean()), float("nan"), right.size, 0)
