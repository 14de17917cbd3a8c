"""Pairs of collections and variability."""

from __future__ import annotations

import numpy as np
import pytest

from skewscope.fingerprint.compare import pair, top_gaps, ulp_distances, ulp_histogram, variability
from tests.fingerprint.answers import collection


def test_equal_platforms_are_equal_and_others_have_their_distance() -> None:
    a, same, other = collection("a"), collection("b"), collection("c", error=1e-3, platform=1)
    assert pair(a, same).equal.all()
    assert not pair(a, same).flipped.any()
    found = pair(a, other)
    assert len(found) == 80
    assert not found.equal.any()
    assert 2e-4 < np.median(found.distance) < 5e-3
    assert pair(a, other, decimals=0).equal.mean() > 0.8


def test_platforms_without_common_probes_or_tokens_have_no_distance() -> None:
    a, few = collection("a"), collection("b", probes=3)
    assert len(pair(a, few)) == 6
    few.keys = [("other", i) for i in range(len(few))]
    assert len(pair(a, few)) == 0
    other = collection("c")
    other.tokens = other.tokens + 1000
    assert np.isinf(pair(a, other).distance).all()


def test_variability_measures_what_repetitions_do() -> None:
    assert not variability(collection("once")).measured
    still = variability(collection("still", repeats=3))
    assert (still.pairs, still.unequal, still.count_ratio, still.relative) == (160, 0.0, 0.0, 0.0)
    noisy = variability(collection("noisy", repeats=2, noise=1e-3, noisy_share=0.5))
    assert noisy.unequal == pytest.approx(0.75, abs=0.12)  # one of two repetitions moved
    assert 0 < noisy.relative < 1e-2
    assert 0 < noisy.distance < 1e-2


def test_ulps_count_numbers_between() -> None:
    x = np.array([1.0, -1.0, 0.0, 1.0, np.nan], np.float32)
    y = np.nextafter(x, np.array([2, -2, -1, 1, 0], np.float32))
    assert ulp_distances(x, y).tolist() == [1, 1, 1, 0, -1]
    assert ulp_distances(np.float32([-0.0]), np.float32([0.0])).tolist() == [0]
    assert ulp_histogram(np.float32([1, 1, 1]), np.float32([1, 1 + 2**-23, 1 + 2**-21])) == [1, 1, 0, 1]


def test_gaps_are_of_the_two_best() -> None:
    a = collection("a", probes=2)
    np.testing.assert_array_equal(top_gaps(a), a.logprobs[:, 0] - a.logprobs[:, 1])
