"""A Llama model in NumPy whose products run on any arithmetic: the white box of this package.

Its logits are the fp64 reference of residuals, the model inside emulated GPUs, and a platform of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from skewscope.fingerprint import arith
from skewscope.fingerprint.formats import round_to
from skewscope.fingerprint.gguf import Gguf, GgufError

Floats = NDArray[np.floating]
Layer = dict[str, Floats]
MATRICES = ("q", "k", "v", "o", "gate", "up", "down")
_NAMES = {
    "attention_norm": "attn_norm",
    "ffn_norm": "ffn_norm",
    "q": "attn_q",
    "k": "attn_k",
    "v": "attn_v",
    "o": "attn_output",
    "gate": "ffn_gate",
    "up": "ffn_up",
    "down": "ffn_down",
}


@dataclass(frozen=True)
class Model:
    """Weights as (outputs, inputs) matrices; rotation by adjacent pairs, as GGUF files store Llama."""

    embedding: Floats
    layers: tuple[Layer, ...]
    norm: Floats
    head: Floats
    heads: int
    kv_heads: int
    theta: float
    epsilon: float


def model_from_gguf(file: Gguf, head_ids: int = 0) -> Model:
    """Return the model of a GGUF file; `head_ids` > 0 keeps only the first so many output ids."""
    meta = file.metadata
    if meta.get("general.architecture") != "llama":
        raise GgufError(f"architecture {meta.get('general.architecture')} is not llama")
    try:
        heads, blocks = int(meta["llama.attention.head_count"]), int(meta["llama.block_count"])
        kv_heads = int(meta.get("llama.attention.head_count_kv", heads))
        theta = float(meta.get("llama.rope.freq_base", 10000.0))
        epsilon = float(meta.get("llama.attention.layer_norm_rms_epsilon", 1e-5))
    except (KeyError, TypeError, ValueError) as error:
        raise GgufError(f"the description of the model lacks {error}") from error
    embedding = file.tensor("token_embd.weight")
    head = file.tensor("output.weight") if "output.weight" in file.tensors else embedding
    layers = tuple(
        {ours: file.tensor(f"blk.{i}.{theirs}.weight") for ours, theirs in _NAMES.items()}
        for i in range(blocks)
    )
    if heads < 1 or kv_heads < 1 or heads % kv_heads or not layers or embedding.shape[1] % heads:
        raise GgufError(f"{blocks} layers of {heads} heads over {kv_heads} do not fit the tensors")
    norm = file.tensor("output_norm.weight")
    head = head[:head_ids] if head_ids else head
    return Model(embedding, layers, norm, head, heads, kv_heads, theta, epsilon)


def random_model(seed: int, *, layers: int = 2, width: int = 64, vocabulary: int = 256) -> Model:
    """Return a small model with seeded weights: enough to show arithmetic, of no use as a language model."""
    random = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> Floats:
        return np.asarray(random.normal(size=(rows, columns)) / np.sqrt(columns), np.float32)

    ones = np.ones(width, np.float32)
    shapes = {"q": (width, width), "k": (width // 2, width), "v": (width // 2, width), "o": (width, width)}
    shapes |= {"gate": (3 * width, width), "up": (3 * width, width), "down": (width, 3 * width)}
    made = tuple(
        {name: matrix(*shape) for name, shape in shapes.items()} | {"attention_norm": ones, "ffn_norm": ones}
        for _ in range(layers)
    )
    embedding = random.normal(size=(vocabulary, width)).astype(np.float32)
    return Model(embedding, made, ones, 2 * matrix(vocabulary, width), 4, 2, 10000.0, 1e-5)


@dataclass(frozen=True)
class Arithmetic:
    """What computes: `product(x, w)` gives x @ w.T for x (n, K), w (M, K); `store` rounds what is kept."""

    product: Callable[[Floats, Floats], Floats]
    store: Callable[[Floats], Floats]


def plain(dtype: type[np.floating]) -> Arithmetic:
    """Return NumPy's own arithmetic: BLAS products in float32 or float64."""
    return Arithmetic(lambda x, w: x.astype(dtype) @ w.T.astype(dtype), lambda x: x.astype(dtype))


def emulated(unit: str, fmt: str) -> Arithmetic:
    """Return a GPU's matrix unit: inputs and results of every product rounded to `fmt`.

    Attention's own two products are small and differ between kernels: they stay in float32.
    """
    kept: dict[int, Floats] = {}

    def product(x: Floats, w: Floats) -> Floats:
        if id(w) not in kept:  # weights live as long as their model
            kept[id(w)] = np.ascontiguousarray(round_to(w, fmt).T)
        found = arith.matmul(round_to(x, fmt), kept[id(w)], unit=unit, fmt=fmt)
        return round_to(found.astype(np.float32, copy=False), fmt)

    return Arithmetic(product, lambda x: round_to(x, fmt))


def quantised(model: Model, how: str) -> Model:
    """Return the model with its layers' matrices on a coarser grid, de-quantised again.

    how: `int8` (one scale per row), `e4m3` (one per matrix), `int4` (one per 64 inputs).
    """
    change = {"int8": _int8_rows, "int4": _int4_groups, "e4m3": _fp8_matrix}[how]
    layers = tuple({k: change(v) if k in MATRICES else v for k, v in one.items()} for one in model.layers)
    return replace(model, layers=layers)


def _int8_rows(w: Floats) -> Floats:
    scale = np.abs(w).max(axis=1, keepdims=True) / 127 + np.finfo(np.float32).tiny
    return np.asarray(np.rint(w / scale) * scale, np.float32)


def _int4_groups(w: Floats) -> Floats:
    groups = w.reshape(w.shape[0], -1, 64 if w.shape[1] % 64 == 0 else w.shape[1])
    scale = np.abs(groups).max(axis=2, keepdims=True) / 7 + np.finfo(np.float32).tiny
    return np.asarray(np.rint(groups / scale) * scale, np.float32).reshape(w.shape)


def _fp8_matrix(w: Floats) -> Floats:
    scale = np.abs(w).max() / 448 + np.finfo(np.float32).tiny
    return np.asarray(round_to(w / scale, "e4m3") * scale, np.float32)


def rotation(model: Model, length: int) -> tuple[Floats, Floats]:
    """Return cosines and sines (length, head width / 2) of the rotary position embedding, in float64."""
    width = model.layers[0]["q"].shape[0] // model.heads
    angle = np.outer(np.arange(length), model.theta ** (-np.arange(0, width, 2) / width))
    return np.cos(angle), np.sin(angle)


def forward(model: Model, tokens: NDArray[np.integer], math: Arithmetic, last: int = 1) -> Floats:
    """Return logits (batch, last, ids) after each of the last positions of tokens (batch, length)."""
    length = tokens.shape[1]
    cosine, sine = (math.store(x) for x in rotation(model, length))
    mask = np.triu(np.full((length, length), -np.inf), 1)
    x = math.store(model.embedding[tokens])
    for layer in model.layers:
        normed = _normed(x, layer["attention_norm"], model.epsilon, math)
        x = math.store(x + _attention(model, layer, normed, cosine, sine, mask, math))
        normed = _normed(x, layer["ffn_norm"], model.epsilon, math)
        gate = _linear(normed, layer["gate"], math)
        active = math.store(math.store(gate / (1 + np.exp(-gate))) * _linear(normed, layer["up"], math))
        x = math.store(x + _linear(active, layer["down"], math))
    x = _normed(x[:, length - last :], model.norm, model.epsilon, math)
    return _linear(x, model.head, math)


def _linear(x: Floats, w: Floats, math: Arithmetic) -> Floats:
    return math.product(x.reshape(-1, x.shape[-1]), w).reshape(*x.shape[:-1], w.shape[0])


def _normed(x: Floats, weight: Floats, epsilon: float, math: Arithmetic) -> Floats:
    wide = x if x.dtype == np.float64 else x.astype(np.float32)
    size = np.sqrt(np.mean(wide * wide, axis=-1, keepdims=True) + wide.dtype.type(epsilon))
    return math.store(math.store(wide / size) * weight)


def _attention(
    model: Model, layer: Layer, x: Floats, cosine: Floats, sine: Floats, mask: Floats, math: Arithmetic
) -> Floats:
    batch, length, _ = x.shape

    def split(name: str, heads: int) -> Floats:
        return _linear(x, layer[name], math).reshape(batch, length, heads, -1).transpose(0, 2, 1, 3)

    def rotate(y: Floats) -> Floats:
        even, odd = y[..., 0::2], y[..., 1::2]
        turned = np.stack([even * cosine - odd * sine, even * sine + odd * cosine], axis=-1)
        return math.store(turned.reshape(y.shape))

    q, k = rotate(split("q", model.heads)), rotate(split("k", model.kv_heads))
    repeat = model.heads // model.kv_heads
    k, v = np.repeat(k, repeat, axis=1), np.repeat(split("v", model.kv_heads), repeat, axis=1)
    scores = q @ k.transpose(0, 1, 3, 2) / q.dtype.type(np.sqrt(q.shape[-1])) + mask.astype(q.dtype)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = math.store(weights / weights.sum(axis=-1, keepdims=True))
    mixed = math.store(weights @ v).transpose(0, 2, 1, 3).reshape(batch, length, -1)
    return _linear(mixed, layer["o"], math)
