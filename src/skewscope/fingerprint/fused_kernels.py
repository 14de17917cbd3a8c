"""Kernels of NVIDIA's matrix units: products aligned to the largest exponent, truncated, added exactly.

Each keeps a block of columns in the first-level cache and works along it, so that the compiler can use
vector instructions. A product of two 11-bit significands is exact in float32; scaled by 2^(F - e) and
converted to an integer it is truncated towards zero, which is what the hardware does. A group of 16 such
integers with F = 25 stays below 2^31 - 2^21; the accumulator is added in float64, where all is exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skewscope.core.jit import inner, njit

BLOCK = 256
"""Columns per block: 16 rows of values and exponents are 32 KiB."""
FP16_KEEP = 0
"""`keep` of an fp16 accumulator; other values are the fraction bits of a truncated fp32 one."""

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Sums = I32 | F64
Powers = tuple[I64, F64, I64, F64]


@inner
def largest_exponents(e: I32, ea: I32, eb: I32, k0: int, k1: int, j0: int) -> None:
    """Raise e[j] to the largest exponent of the group's products, for each column of the block."""
    for k in range(k0, k1, 4):
        x0, x1, x2, x3 = ea[k], ea[k + 1], ea[k + 2], ea[k + 3]
        r0, r1, r2, r3 = eb[k, j0:], eb[k + 1, j0:], eb[k + 2, j0:], eb[k + 3, j0:]
        for j in range(e.size):
            low = max(np.int32(x0 + r0[j]), np.int32(x1 + r1[j]))
            high = max(np.int32(x2 + r2[j]), np.int32(x3 + r3[j]))
            e[j] = max(e[j], max(low, high))


@inner
def set_powers(power: Powers, e: I32, fraction: int) -> None:
    """Set 2^(F - e) and its inverse by their exponent fields, which is what vector instructions can do."""
    up, down = power[0], power[2]
    for j in range(e.size):
        shift = np.int64(fraction - e[j])
        up[j] = (1023 + shift) << 52
        down[j] = (1023 - shift) << 52


@inner
def _add_narrow(acc: I32, scale: F32, a: F32, b: F32, k0: int, k1: int, j0: int) -> None:
    for k in range(k0, k1, 4):
        x0, x1, x2, x3 = a[k], a[k + 1], a[k + 2], a[k + 3]
        r0, r1, r2, r3 = b[k, j0:], b[k + 1, j0:], b[k + 2, j0:], b[k + 3, j0:]
        for j in range(acc.size):
            s = scale[j]
            low = np.int32(np.int32(x0 * r0[j] * s) + np.int32(x1 * r1[j] * s))
            high = np.int32(np.int32(x2 * r2[j] * s) + np.int32(x3 * r3[j] * s))
            acc[j] += np.int32(low + high)


@inner
def add_wide(acc: F64, scale: F64, a: F64, b: F64, k0: int, k1: int, j0: int) -> None:
    """Add the group's products, each truncated at its column's scale."""
    for k in range(k0, k1):
        x = a[k]
        row = b[k, j0:]
        for j in range(acc.size):
            acc[j] += np.trunc(x * row[j] * scale[j])


@inner
def _start(e: I32, c_bits: I32, min_exponent: int) -> None:
    """Set e[j] to the accumulator's exponent, not below the unit's smallest."""
    for j in range(e.size):
        field = (c_bits[j] >> 23) & 255
        e[j] = max(np.int32(max(field, 1) - 127), np.int32(min_exponent))


@inner
def _truncate(total: F64, bits: I64, c: F32, keep: int) -> None:
    """Round towards zero to `keep` fraction bits of an fp32 exponent range; overflow gives infinity."""
    mask = np.int64(-1) << np.int64(52 - keep)
    grid = 2.0 ** (126 + keep)
    for j in range(c.size):
        value = total[j]
        small = np.trunc(value * grid) / grid
        bits[j] &= mask
        c[j] = np.float32(small if abs(value) < 2.0**-126 else total[j])


@inner
def _to_fp16(total: F64, c: F32) -> None:
    """Round to the nearest fp16 value, ties to even, once."""
    for j in range(c.size):
        value = total[j]
        step = 2.0**-24
        size = abs(value)
        if size >= 2.0**-14:
            step = 2.0 ** (np.floor(np.log2(size)) - 10)
            if size >= step * 2048:  # log2 of a value just below a power of two rounds up or down
                step *= 2
            elif size < step * 1024:
                step /= 2
        rounded = np.rint(value / step) * step
        c[j] = np.float32(rounded if abs(rounded) <= 65504.0 else np.copysign(np.inf, rounded))


@inner
def _finish(acc: Sums, power: Powers, total: F64, c: F32, keep: int) -> None:
    """Add the accumulator to the group's sum and round: that is the next accumulator.

    power: bits and values of 2^(F - e) and of its inverse, per column.
    """
    up, down = power[1], power[3]
    for j in range(c.size):
        total[j] = (acc[j] + np.trunc(c[j] * up[j])) * down[j]
    if keep == FP16_KEEP:
        _to_fp16(total, c)
    else:
        _truncate(total, total.view(np.int64), c, keep)


@njit
def fused_narrow(
    a: F32, ea: I32, b: F32, eb: I32, c: F32, group: int, fraction: int, min_exponent: int, keep: int
) -> None:
    """Add a @ b to c in place, as the unit does; products must neither overflow nor vanish in float32.

    a, ea: (M, K) values and exponents, C order; b, eb: (K, N); c: (M, N). K is a multiple of `group`,
    which is a multiple of 4.
    """
    for j0 in range(0, c.shape[1], BLOCK):
        n = min(BLOCK, c.shape[1] - j0)
        e, acc, scale = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.float32)
        total, up, down = np.empty(n, np.float64), np.empty(n, np.float64), np.empty(n, np.float64)
        scale_bits, power = scale.view(np.int32), (up.view(np.int64), up, down.view(np.int64), down)
        for k0 in range(0, a.shape[1], group):
            for i in range(a.shape[0]):
                row = c[i, j0 : j0 + n]
                _start(e, row.view(np.int32), min_exponent)
                largest_exponents(e, ea[i], eb, k0, k0 + group, j0)
                set_powers(power, e, fraction)
                for j in range(n):
                    # 2^(F - e), bounded: at the bound all products are zero or vanish anyway.
                    shift = min(max(np.int32(fraction) - e[j], np.int32(-126)), np.int32(126))
                    scale_bits[j] = np.int32((shift + np.int32(127)) << 23)
                    acc[j] = 0
                _add_narrow(acc, scale, a[i], b, k0, k0 + group, j0)
                _finish(acc, power, total, row, keep)


@njit
def fused_wide(
    a: F64, ea: I32, b: F64, eb: I32, c: F32, group: int, fraction: int, min_exponent: int, keep: int
) -> None:
    """Do the same in float64, for products of any size; about half as fast."""
    for j0 in range(0, c.shape[1], BLOCK):
        n = min(BLOCK, c.shape[1] - j0)
        e, acc = np.empty(n, np.int32), np.empty(n, np.float64)
        total, up, down = np.empty(n, np.float64), np.empty(n, np.float64), np.empty(n, np.float64)
        power = (up.view(np.int64), up, down.view(np.int64), down)
        for k0 in range(0, a.shape[1], group):
            for i in range(a.shape[0]):
                row = c[i, j0 : j0 + n]
                _start(e, row.view(np.int32), min_exponent)
                largest_exponents(e, ea[i], eb, k0, k0 + group, j0)
                set_powers(power, e, fraction)
                acc[:] = 0.0
                add_wide(acc, up, a[i], b, k0, k0 + group, j0)
                _finish(acc, power, total, row, keep)
