"""Classifiers for unpaired traffic. Those that train need scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

from skewscope.fingerprint.svm import (
    bit_features,
    bits,
    grid_features,
    many_classes,
    pairwise,
    residual_features,
)
from tests.fingerprint.answers import collection


def test_bits_are_sign_exponent_and_fraction() -> None:
    got = bits(np.float32([[-1.0, 0.0]]))
    assert got.shape == (1, 64)
    assert got[0, :10].tolist() == [1, 0, 1, 1, 1, 1, 1, 1, 1, 0]
    assert not got[0, 32:].any()


def test_residuals_grow_with_the_error_and_lack_where_the_reference_does() -> None:
    reference = collection("exact", probes=10)
    small, large = (collection("x", probes=12, error=e, platform=1) for e in (1e-4, 1e-2))
    a, b = residual_features(small, reference), residual_features(large, reference)
    assert np.isnan(a[20:]).all()
    assert np.median(b[:20, 0] - a[:20, 0]) == pytest.approx(np.log2(100), abs=0.5)


def test_formats_are_told_apart_on_unseen_prompts_and_kernels_are_not() -> None:
    pytest.importorskip("sklearn", reason="scikit-learn (extra `fingerprint`) is not installed")
    full, half = collection("a"), collection("b", grid="bf16")
    kernel = collection("c", error=1e-5, platform=1)
    for features in (bit_features, grid_features):
        assert pairwise(full, half, features, vote=8).single > 0.95
    assert pairwise(full, kernel, bit_features).single < 0.7
    reference = collection("exact")
    noisy = collection("d", error=1e-3, platform=2)
    found = pairwise(kernel, noisy, lambda c: residual_features(c, reference), vote=8)
    assert found.single > 0.95
    assert found.votes >= 8
    assert many_classes([full, half], grid_features).single > 0.95
