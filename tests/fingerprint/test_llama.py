"""The NumPy model."""

from __future__ import annotations

import numpy as np
import pytest

from skewscope.fingerprint.formats import holds
from skewscope.fingerprint.gguf import F32, Gguf, GgufError
from skewscope.fingerprint.llama import (
    MATRICES,
    emulated,
    forward,
    model_from_gguf,
    plain,
    quantised,
    random_model,
)

MODEL = random_model(1)
TOKENS = np.random.default_rng(2).integers(0, 256, (3, 7))


def test_precisions_agree_as_far_as_they_reach() -> None:
    exact = forward(MODEL, TOKENS, plain(np.float64), 3)
    assert exact.shape == (3, 3, 256)
    single = forward(MODEL, TOKENS, plain(np.float32), 3)
    assert single.dtype == np.float32
    assert 0 < np.abs(single - exact).max() < 1e-4


def test_later_tokens_do_not_change_earlier_answers() -> None:
    changed = TOKENS.copy()
    changed[:, -1] = (changed[:, -1] + 1) % 256
    before, after = (forward(MODEL, t, plain(np.float64), 7) for t in (TOKENS, changed))
    np.testing.assert_allclose(before[:, :6], after[:, :6], rtol=1e-12)
    assert np.abs(before[:, 6] - after[:, 6]).max() > 1e-3
    swapped = forward(MODEL, TOKENS[:, [1, 0, 2, 3, 4, 5, 6]], plain(np.float64), 1)
    assert np.abs(swapped - before[:, 6:]).max() > 1e-6  # positions matter


@pytest.mark.parametrize("fmt", ["fp16", "bf16"])
def test_emulated_gpus_differ_from_each_other_where_they_should(fmt: str) -> None:
    exact = forward(MODEL, TOKENS, plain(np.float64), 7)
    seen = {u: forward(MODEL, TOKENS, emulated(u, fmt), 7) for u in ("A100", "Ada", "H100", "H200", "MI250")}
    assert all(holds(v, fmt) for v in seen.values())
    assert np.array_equal(seen["A100"], seen["Ada"])
    assert np.array_equal(seen["H100"], seen["H200"])
    assert not np.array_equal(seen["A100"], seen["MI250"])
    error = np.sqrt(np.mean((seen["H100"] - exact) ** 2)) / np.std(exact)
    assert error < (0.003 if fmt == "fp16" else 0.03)


@pytest.mark.parametrize(
    ("how", "levels", "least"), [("int8", 255, 1e-4), ("int4", 15, 1e-2), ("e4m3", 255, 1e-3)]
)
def test_quantised_weights_have_few_levels_and_a_matching_error(how: str, levels: int, least: float) -> None:
    coarse = quantised(MODEL, how)
    for name in MATRICES:
        before, after = MODEL.layers[0][name], coarse.layers[0][name]
        row = after[0, :64] if how == "int4" else after[0]
        assert np.unique(row).size <= levels
        assert least < np.abs(after - before).mean() / np.abs(before).mean() < 0.2
    assert coarse.layers[0]["ffn_norm"] is MODEL.layers[0]["ffn_norm"]


def test_a_file_that_describes_no_llama_is_refused() -> None:
    good = {
        "general.architecture": "llama",
        "llama.attention.head_count": 4,
        "llama.attention.head_count_kv": 2,
        "llama.block_count": 1,
    }
    names = {
        "attention_norm": "attn_norm",
        "ffn_norm": "ffn_norm",
        "q": "attn_q",
        "k": "attn_k",
        "v": "attn_v",
    }
    names |= {"o": "attn_output", "gate": "ffn_gate", "up": "ffn_up", "down": "ffn_down"}
    weights = {f"blk.0.{theirs}.weight": MODEL.layers[0][ours] for ours, theirs in names.items()}
    weights |= {"token_embd.weight": MODEL.embedding, "output_norm.weight": MODEL.norm}
    places, raw = {}, b""
    for name, values in weights.items():
        places[name] = (values.shape, F32, len(raw))
        raw += values.astype("<f4").tobytes()
    data = np.frombuffer(raw, np.uint8)
    model = model_from_gguf(Gguf(good, places, data), head_ids=100)
    assert forward(model, TOKENS, plain(np.float32)).shape == (3, 1, 100)
    for change in (
        {"general.architecture": "mamba"},
        {"llama.block_count": "x"},
        {"llama.block_count": 2},
        {"llama.block_count": 0},
        {"llama.attention.head_count": 5},
        {"llama.attention.head_count_kv": 0},
        {"llama.attention.head_count": None},
    ):
        with pytest.raises(GgufError):
            model_from_gguf(Gguf(good | change, places, data))
