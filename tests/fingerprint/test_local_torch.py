"""The PyTorch model beside the NumPy one. Needs PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

from skewscope.fingerprint.llama import forward, plain, random_model

pytest.importorskip("torch", reason="PyTorch (extra `fingerprint`) is not installed")

from skewscope.fingerprint.local_torch import ATTENTION, TorchModel, build

MODEL = random_model(1)
TOKENS = np.random.default_rng(2).integers(0, 256, (3, 7))


@pytest.mark.parametrize("attention", ATTENTION)
def test_both_engines_compute_the_same_function(attention: str) -> None:
    expected = forward(MODEL, TOKENS, plain(np.float64), 3)
    got = TorchModel(MODEL, dtype="fp64", attention=attention).logits(TOKENS, 3)
    np.testing.assert_allclose(got, expected, atol=1e-4)
    for dtype, error in (("fp32", 1e-4), ("fp16", 0.05), ("bf16", 0.5)):
        near = TorchModel(MODEL, dtype=dtype, attention=attention).logits(TOKENS, 3)
        assert np.abs(near - expected).max() < error


def test_a_flipped_bit_changes_answers_and_flips_back() -> None:
    model = TorchModel(MODEL, dtype="bf16")
    before = model.logits(TOKENS)
    model.flip_weight_bit(0, "down", 100, 6)
    assert not np.array_equal(model.logits(TOKENS), before)
    model.flip_weight_bit(0, "down", 100, 6)
    np.testing.assert_array_equal(model.logits(TOKENS), before)
    model.flip_weight_bit(0, "down", 100, 15)  # the sign
    assert not np.array_equal(model.logits(TOKENS), before)
    for name, bit in (("norm", 1), ("down", 16)):
        with pytest.raises(ValueError, match=r"one of|weight"):
            model.flip_weight_bit(0, name, 0, bit)


def test_the_build_names_what_decides_the_arithmetic() -> None:
    assert {"torch", "cpu_capability", "threads"} <= build().keys()
