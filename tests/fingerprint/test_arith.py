"""Matrix units against outputs recorded on GPUs and against exact rational arithmetic."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from skewscope.fingerprint.arith import NAN_BITS, fused_dot, matmul
from skewscope.fingerprint.formats import FORMATS, round_to
from tests.fingerprint import slow_units

SAMPLES = os.environ.get("SKEWSCOPE_SAMPLES", "")
VECTORS = sorted(Path(SAMPLES, "tensor-core").glob("*.npz")) if SAMPLES else []
WITHOUT_ACCUMULATOR = {("H100", "e4m3"), ("H100", "e5m2"), ("H200", "e4m3"), ("H200", "e5m2")}


def operands(fmt: str, shape: tuple[int, ...], seed: int, spread: float = 3.0) -> np.ndarray:
    """Values over many binary orders of magnitude, zeros and subnormals among them."""
    random = np.random.default_rng(seed)
    values = random.normal(size=shape) * 2.0 ** np.clip(random.normal(0, spread, shape), -140, 60)
    values[random.random(shape) < 0.05] = 0
    largest = FORMATS[fmt].largest
    return round_to(np.clip(values, -largest, largest), fmt)


def same_bits(got: np.ndarray, expected: np.ndarray) -> None:
    wanted = np.asarray(expected, dtype=np.float32)
    zero = np.float32(0)  # + 0: the sign of a zero is not compared
    np.testing.assert_array_equal((got + zero).view(np.uint32), (wanted + zero).view(np.uint32))


@pytest.mark.samples
@pytest.mark.skipif(not VECTORS, reason="SKEWSCOPE_SAMPLES names no folder with tensor-core vectors")
@pytest.mark.parametrize("path", VECTORS, ids=lambda p: p.stem)
def test_every_recorded_output_is_equal_bit_by_bit(path: Path) -> None:
    unit, written = path.stem.split("_")
    fmt, data = written.lower(), np.load(path)
    a, b, c = (data[name].view(np.float32) for name in (f"a_{written}", f"b_{written}", "c_fp32"))
    for out in ("fp32", "fp16"):
        if f"d_{out}" not in data:
            continue
        # Hopper's fp8 outputs in fp32 were recorded with an accumulator of zero.
        start = np.zeros_like(c) if out == "fp32" and (unit, fmt) in WITHOUT_ACCUMULATOR else c
        got = fused_dot(a, b, start, unit=unit, fmt=fmt, out=out)
        assert np.array_equal(got.view(np.uint32), data[f"d_{out}"]), out


FUSED = [
    ("V100", "fp16", 4, 23, -133, 23),
    ("T4", "fp16", 8, 24, -132, 23),
    ("A100", "bf16", 8, 24, -132, 23),
    ("A100", "tf32", 4, 24, -132, 23),
    ("Ada", "e4m3", 16, 13, -132, 13),
    ("H100", "fp16", 16, 25, -133, 23),
    ("H100", "bf16", 16, 25, -133, 23),
    ("H100", "tf32", 8, 25, -133, 23),
    ("H100", "e5m2", 32, 13, -133, 13),
]


@pytest.mark.parametrize(("unit", "fmt", "group", "bits", "least", "keep"), FUSED)
@pytest.mark.parametrize("spread", [1.0, 12.0, 50.0])
def test_fused_units_equal_rational_arithmetic(
    unit: str, fmt: str, group: int, bits: int, least: int, keep: int, spread: float
) -> None:
    spread = spread if fmt in ("bf16", "tf32") else min(spread, 12.0)
    a, b = operands(fmt, (3, 64), 1, spread), operands(fmt, (64, 5), 2, spread)
    c = operands("fp32", (3, 5), 3, spread)
    expected = [
        [
            slow_units.fused(a[i], b[:, j], c[i, j], fmt=fmt, group=group, bits=bits, least=least, keep=keep)
            for j in range(5)
        ]
        for i in range(3)
    ]
    same_bits(matmul(a, b, c, unit=unit, fmt=fmt), np.array(expected))


@pytest.mark.parametrize(("unit", "group", "bits"), [("V100", 4, 23), ("A100", 8, 24), ("H100", 16, 25)])
def test_fp16_outputs_round_once_per_group(unit: str, group: int, bits: int) -> None:
    a, b, c = operands("fp16", (20, 32), 4, 2), operands("fp16", (20, 32), 5, 2), operands("fp16", (20,), 6)
    expected = [
        slow_units.fused(x, y, z, fmt="fp16", group=group, bits=bits, least=-133, keep=23, out="fp16")
        for x, y, z in zip(a, b, c, strict=True)
    ]
    same_bits(fused_dot(a, b, c, unit=unit, fmt="fp16", out="fp16"), np.array(expected))


@pytest.mark.parametrize(("fmt", "group"), [("fp16", 4), ("bf16", 2)])
@pytest.mark.parametrize("spread", [1.0, 8.0, 20.0])
def test_cdna1_sums_exactly(fmt: str, group: int, spread: float) -> None:
    a, b, c = (operands(f, s, 7, spread) for f, s in ((fmt, (30, 16)), (fmt, (30, 16)), ("fp32", (30,))))
    b = b[::-1].copy()
    expected = [slow_units.exact(x, y, z, group=group) for x, y, z in zip(a, b, c, strict=True)]
    same_bits(fused_dot(a, b, c, unit="MI100", fmt=fmt), np.array(expected))


@pytest.mark.parametrize(
    ("fmt", "group", "parts"), [("fp16", 8, 1), ("bf16", 8, 1), ("e4m3", 16, 2), ("e5m2", 16, 2)]
)
def test_cdna3_rounds_down_where_it_joins(fmt: str, group: int, parts: int) -> None:
    a, b, c = (operands(f, s, 8) for f, s in ((fmt, (30, 32)), (fmt, (30, 32)), ("fp32", (30,))))
    b = b[::-1].copy()
    expected = [
        slow_units.floored(x, y, z, fmt=fmt, group=group, parts=parts)
        for x, y, z in zip(a, b, c, strict=True)
    ]
    same_bits(fused_dot(a, b, c, unit="MI300", fmt=fmt), np.array(expected))


def test_cdna2_adds_in_a_tree_and_flushes_subnormals() -> None:
    a, b, c = operands("fp16", (30, 4), 9), operands("fp16", (30, 4), 10), operands("fp32", (30,), 11)
    a[np.abs(a) < 2.0**-14] = 0
    p = a * b
    same_bits(
        fused_dot(a, b, c, unit="MI250", fmt="fp16"),
        ((p[:, 0] + p[:, 1]) + (p[:, 2] + p[:, 3])) + c,
    )
    zeros = np.zeros((1, 4), np.float32)
    tiny = np.array([2.0**-130], np.float32)
    assert fused_dot(zeros, zeros, tiny, unit="MI250", fmt="bf16")[0] == 0
    assert fused_dot(zeros, zeros, tiny, unit="MI100", fmt="bf16")[0] == tiny[0]


def test_known_probe_tells_generations_apart() -> None:
    # One large product and many small ones: what is truncated shows the bits that are kept.
    a = np.ones((1, 16), np.float32)
    a[0, 0] = 2.0**12
    b = np.full((16, 1), 2.0**-13, np.float32)
    b[0] = 2.0**12
    got = {u: float(matmul(a, b, unit=u, fmt="fp16")[0, 0]) for u in ("V100", "A100", "H100", "MI100")}
    assert got == dict.fromkeys(("V100", "A100", "H100", "MI100"), 2.0**24)
    small = np.full((1, 16), 2.0**-12, np.float32)
    small[0, 0] = 1
    ones = np.full((16, 1), 2.0**-13, np.float32)
    ones[0] = 1
    ones[2:] = 0
    got = {u: float(matmul(small, ones, unit=u, fmt="fp16")[0, 0]) for u in ("V100", "H100")}
    assert got == {"V100": 1.0, "H100": 1.0}  # fp32 cannot hold the bit that only Hopper kept
    minus = np.zeros((1, 1), np.float32) - 1
    got = {u: float(matmul(small, ones, minus, unit=u, fmt="fp16")[0, 0]) for u in ("V100", "H100")}
    assert got == {"V100": 0.0, "H100": 2.0**-25}


def test_int8_wraps_as_int32_does() -> None:
    a, b = np.full((1, 4), -128, np.int8), np.full((4, 1), -128, np.int8)
    start = np.array([[2**31 - 1]], np.int32)
    got = matmul(a, b, start, unit="A100", fmt="int8")
    assert got.dtype == np.int32
    assert got[0, 0] == 2**31 - 1 + 4 * 128 * 128 - 2**32


def test_infinities_and_nan_follow_ieee_with_one_nan() -> None:
    inf = np.inf
    a = np.array([[inf, 1], [1, 1], [inf, inf], [0, 0]], np.float32)
    b = np.array([[1, 1], [1, -1], [1, -1], [0, 0]], np.float32)
    c = np.array([0, inf, 0, -inf], np.float32)
    got = fused_dot(a, b, c, unit="H100", fmt="fp16")
    assert got[0] == inf
    assert got[1] == inf
    assert got.view(np.uint32)[2] == NAN_BITS
    assert got[3] == -inf


def test_columns_rows_and_threads_do_not_change_a_value() -> None:
    a, b, c = operands("fp16", (7, 40), 12), operands("fp16", (40, 300), 13), operands("fp32", (7, 300), 14)
    whole = matmul(a, b, c, unit="H100", fmt="fp16")
    same_bits(matmul(a, b, c, unit="H100", fmt="fp16", threads=3), whole)
    same_bits(matmul(a[2:3], b[:, 290:], c[2:3, 290:], unit="H100", fmt="fp16"), whole[2:3, 290:])
    assert matmul(a[:0], b, unit="H100", fmt="fp16").shape == (0, 300)
    assert fused_dot(a[:0], a[:0], c[:0, 0], unit="A100", fmt="fp16").shape == (0,)


def test_arguments_that_do_not_fit_are_named() -> None:
    a, b = np.ones((2, 4), np.float32), np.ones((4, 2), np.float32)
    for change, said in (
        ({"unit": "H900"}, "H900"),
        ({"fmt": "fp12"}, "fp12"),
        ({"unit": "V100", "fmt": "bf16"}, "V100"),
        ({"out": "fp64"}, "fp64"),
        ({"fmt": "bf16", "out": "fp16"}, "bf16"),
    ):
        with pytest.raises(ValueError, match=said):
            matmul(a, b, **({"unit": "H100", "fmt": "fp16"} | change))
    with pytest.raises(ValueError, match="fit"):
        matmul(a, a, unit="H100", fmt="fp16")
    with pytest.raises(ValueError, match="shape"):
        matmul(a, b, np.zeros((1, 1)), unit="H100", fmt="fp16")
    with pytest.raises(ValueError, match="cannot"):
        matmul(a * np.float32(1.0001), b, unit="H100", fmt="fp16")
    with pytest.raises(ValueError, match="shapes"):
        fused_dot(a, b, np.zeros(2), unit="H100", fmt="fp16")
