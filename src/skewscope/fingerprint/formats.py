"""Number formats of matrix units and of log-probabilities: their grids, and rounding onto them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Format:
    """One binary floating-point format.

    fraction_bits: stored bits of the significand; min_exponent: of the smallest normal number, which
    subnormal numbers share; largest: greatest finite value.
    """

    fraction_bits: int
    min_exponent: int
    largest: float


FORMATS = {
    "fp32": Format(23, -126, float(np.finfo(np.float32).max)),
    "tf32": Format(10, -126, float((2 - 2.0**-10) * 2.0**127)),
    "bf16": Format(7, -126, float((2 - 2.0**-7) * 2.0**127)),
    "fp16": Format(10, -14, 65504.0),
    "e5m2": Format(2, -14, 57344.0),
    "e4m3": Format(3, -6, 448.0),
    # AMD's variants without infinities and negative zero: one more bias, so one exponent lower.
    "e5m2fnuz": Format(2, -15, 57344.0),
    "e4m3fnuz": Format(3, -7, 240.0),
}
INT8 = (-128, 127)


def round_to(values: NDArray[np.floating], name: str) -> NDArray[np.float32]:
    """Return the nearest values of format `name` (ties to even), as float32; NaN stays NaN.

    Values beyond the largest finite one become infinite, except in fp8, where they saturate: that is
    what quantisers of inference engines do.
    """
    if name == "fp16":
        with np.errstate(over="ignore"):
            return np.asarray(values).astype(np.float16).astype(np.float32)
    if name == "bf16" and np.asarray(values).dtype == np.float32:
        return _round_bf16(np.asarray(values))
    form = FORMATS[name]
    wide = np.asarray(values, dtype=np.float64)
    finite = np.isfinite(wide)
    safe = np.where(finite, wide, 0.0)
    exponent = np.maximum(np.frexp(safe)[1] - 1, form.min_exponent)
    step = exponent - form.fraction_bits
    rounded = np.ldexp(np.rint(np.ldexp(safe, -step)), step)
    beyond = np.abs(rounded) > form.largest
    limit = form.largest if name.startswith("e") else np.inf
    rounded = np.where(beyond, np.copysign(limit, rounded), rounded)
    with np.errstate(over="ignore"):
        return np.where(finite, rounded, wide).astype(np.float32)


def holds(values: NDArray[np.floating], name: str) -> bool:
    """Return whether every finite value is one of the format's own."""
    finite = np.asarray(values)[np.isfinite(values)]
    return bool(np.array_equal(round_to(finite, name), finite))


def _round_bf16(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Add half of what is cut off, ties to even, and cut: several times faster than the general way."""
    bits = np.ascontiguousarray(values).view(np.uint32)
    half = ((bits >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF)
    rounded = ((bits + half) & np.uint32(0xFFFF0000)).view(np.float32)
    return np.where(np.isfinite(values), rounded, values)


def exponents(values: NDArray[np.float32], min_exponent: int) -> NDArray[np.int32]:
    """Return floor(log2|x|), never below that of a subnormal; zero counts as subnormal.

    A matrix unit reads the exponent field: it does not normalise subnormal numbers.
    """
    bits = np.ascontiguousarray(values).view(np.int32)
    field = ((bits >> np.int32(23)) & np.int32(255)) - np.int32(127)
    found: NDArray[np.int32] = np.maximum(field, np.int32(min_exponent))
    return found
