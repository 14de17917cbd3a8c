"""Grids of values: how logits were stored."""

from __future__ import annotations

import numpy as np
import pytest

from skewscope.fingerprint.formats import round_to
from skewscope.fingerprint.grid import decimals_of, grid_of, step_of, storage_of, trailing_zeros
from tests.fingerprint.answers import collection


@pytest.mark.parametrize("name", ["fp32", "fp16", "bf16"])
def test_storage_shows_behind_log_softmax(name: str) -> None:
    seen = collection("x", grid=name)
    assert grid_of(seen.logprobs).storage == name
    assert grid_of(seen.logprobs, seen.logits).storage == name


@pytest.mark.parametrize("name", ["e4m3", "e5m2", "bf16", "fp16"])
def test_raw_values_show_their_format(name: str) -> None:
    values = np.random.default_rng(1).normal(size=2000).astype(np.float32) * 8
    assert storage_of(round_to(values, name)) == name
    assert storage_of(values) == "fp32"


def test_int8_shows_as_multiples_of_one_scale() -> None:
    values = np.random.default_rng(2).normal(size=5000)
    scale = np.abs(values).max() / 127
    assert storage_of((np.rint(values / scale) * scale).astype(np.float32)) == "int8"


def test_the_step_is_that_of_the_coarsest_grid() -> None:
    x = np.cumsum(np.random.default_rng(3).integers(0, 4, size=(5, 20)), axis=1) * -0.0625 - 1.234
    x[:, 1] = x[:, 0] - 0.0625
    assert step_of(x.astype(np.float32)).tolist() == [0.0625] * 5
    assert step_of(np.random.default_rng(4).normal(-9, 3, (5, 20)).astype(np.float32)).tolist() == [0.0] * 5


@pytest.mark.parametrize("digits", [2, 4])
def test_rounded_values_are_seen_and_hide_the_storage(digits: int) -> None:
    x = np.round(np.random.default_rng(5).normal(-4, 2, (30, 20)), digits).astype(np.float32)
    assert decimals_of(x) == digits
    assert grid_of(x).storage == "unknown"
    assert decimals_of(np.float32([-1.2345678])) == -1
    assert decimals_of(np.zeros(0, np.float32)) == -1


def test_trailing_zeros_are_of_the_significand() -> None:
    assert trailing_zeros(np.float32([1.0, 1.5, 1 + 2**-23, 0.0])).tolist() == [23, 22, 0, 23]


def test_nothing_to_see_is_said() -> None:
    none = grid_of(np.zeros((0, 0), np.float32))
    assert (none.storage, none.step) == ("unknown", 0.0)
