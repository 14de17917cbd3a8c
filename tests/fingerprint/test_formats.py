"""Rounding onto the grids of number formats."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewscope.fingerprint.formats import FORMATS, exponents, holds, round_to


@given(st.floats(width=32, allow_nan=False))
def test_fp16_and_bf16_equal_other_implementations(value: float) -> None:
    x = np.array([value], np.float32)
    with np.errstate(over="ignore"):
        assert round_to(x, "fp16")[0] == x.astype(np.float16)[0]
    bits = int(x.view(np.uint32)[0])
    nearest = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16  # adds half a step, ties to even
    expected = np.array([nearest & 0xFFFFFFFF], np.uint32).view(np.float32)[0]
    assert round_to(x, "bf16")[0] == (expected if np.isfinite(value) else value)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_rounding_is_idempotent_odd_and_keeps_nan(name: str) -> None:
    x = np.random.default_rng(1).normal(size=500) * 2.0 ** np.random.default_rng(2).integers(-30, 30, 500)
    once = round_to(x, name)
    np.testing.assert_array_equal(round_to(once, name), once)
    np.testing.assert_array_equal(round_to(-x, name), -once)
    assert holds(once, name)
    assert not holds(np.array([1 + 2.0**-24], np.float64), name) or name == "fp32"
    assert np.isnan(round_to(np.array([np.nan]), name)[0])


def test_fp8_has_the_values_of_its_specification() -> None:
    # OCP 8-bit floating point specification: largest, smallest normal and smallest subnormal numbers.
    assert round_to(np.array([1e9, -1e9, 449.0]), "e4m3").tolist() == [448.0, -448.0, 448.0]
    assert round_to(np.array([2.0**-9, 2.0**-10, 2.0**-6]), "e4m3").tolist() == [2.0**-9, 0.0, 2.0**-6]
    assert round_to(np.array([2.0**-16, 57344.0]), "e5m2").tolist() == [2.0**-16, 57344.0]
    assert np.isinf(round_to(np.array([70000.0]), "fp16")[0])


def test_exponents_stop_at_the_subnormal_one() -> None:
    got = exponents(np.array([1.0, -3.9, 2.0**-20, 0.0, 65504.0], np.float32), -14)
    assert got.tolist() == [0, 1, -14, -14, 15]
