"""Kernels of AMD's matrix units: an exact sum (CDNA 1), a tree of fp32 sums (CDNA 2), two floors (CDNA 3).

No outputs recorded on this hardware are at hand: the rules are those of the publications in `units.py`.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.jit import inner, njit
from skewscope.fingerprint.fused_kernels import (
    BLOCK,
    F32,
    F64,
    I32,
    I64,
    Powers,
    add_wide,
    largest_exponents,
    set_powers,
)

SUM_BITS, PART_BITS = 31, 24
"""CDNA 3 keeps 31 bits below the largest exponent of the sum and 24 of products and accumulator."""
LEAST_EXPONENT = -300
"""Below that of any product of bf16 numbers."""


@inner
def _add_exactly(high: F64, low: F64, rest: F64, x: float, row: F64) -> None:
    """Add x * row to the unevaluated sum high + low; what even `low` loses goes to `rest`."""
    for j in range(high.size):
        term = x * row[j]
        total = high[j] + term
        back = total - high[j]
        error = (high[j] - (total - back)) + (term - back)
        high[j] = total
        both = low[j] + error
        back = both - low[j]
        rest[j] += (low[j] - (both - back)) + (error - back)
        low[j] = both


@inner
def _round_once(high: F64, bits: I64, low: F64, rest: F64, c: F32) -> None:
    """Round high + low + rest to the nearest fp32: to odd in float64 first, then to even."""
    for j in range(c.size):
        total = high[j] + low[j]
        back = total - high[j]
        error = (high[j] - (total - back)) + (low[j] - back) + rest[j]
        high[j] = total
        even = (bits[j] & 1) == 0
        if even and error != 0.0:
            bits[j] += 1 if (error > 0.0) == (total > 0.0) else -1
        c[j] = np.float32(high[j])


@njit
def exact_rows(a: F64, b: F64, c: F32, group: int) -> None:
    """Add a @ b to c in place: `group` products and the accumulator summed exactly, rounded once."""
    for j0 in range(0, c.shape[1], BLOCK):
        n = min(BLOCK, c.shape[1] - j0)
        high, low, rest = np.empty(n, np.float64), np.empty(n, np.float64), np.empty(n, np.float64)
        bits = high.view(np.int64)
        for k0 in range(0, a.shape[1], group):
            for i in range(a.shape[0]):
                row = c[i, j0 : j0 + n]
                high[:] = row
                low[:] = 0.0
                rest[:] = 0.0
                for k in range(k0, k0 + group):
                    _add_exactly(high, low, rest, a[i, k], b[k, j0:])
                _round_once(high, bits, low, rest, row)


@inner
def _flush(value: np.float32) -> np.float32:
    return np.float32(0.0) if abs(value) < np.float32(2.0**-126) else value


@njit
def tree_rows(a: F32, b: F32, c: F32) -> None:
    """Add a @ b to c in place, four products at a time: ((p0 + p1) + (p2 + p3)) + c in fp32.

    Subnormal numbers count as zero on the way in and out.
    """
    for k in range(0, a.shape[1], 4):
        for i in range(a.shape[0]):
            x0, x1, x2, x3 = _flush(a[i, k]), _flush(a[i, k + 1]), _flush(a[i, k + 2]), _flush(a[i, k + 3])
            r0, r1, r2, r3, row = b[k], b[k + 1], b[k + 2], b[k + 3], c[i]
            for j in range(row.size):
                low = _flush(_flush(x0 * _flush(r0[j])) + _flush(x1 * _flush(r1[j])))
                high = _flush(_flush(x2 * _flush(r2[j])) + _flush(x3 * _flush(r3[j])))
                row[j] = _flush(_flush(low + high) + _flush(row[j]))


@inner
def _join(total: F64, largest: I32, acc: F64, e: I32, power: Powers, first: bool) -> None:
    """Bring two parts to the larger exponent, rounding down, and add them; the first is only kept."""
    if first:
        total[:] = acc
        largest[:] = e
        return
    old_bits, old, new_bits, new = power
    for j in range(total.size):
        top = max(e[j], largest[j])
        old_bits[j] = np.int64(1023 + largest[j] - top) << 52
        new_bits[j] = np.int64(1023 + e[j] - top) << 52
        largest[j] = top
    for j in range(total.size):
        total[j] = np.floor(total[j] * old[j]) + np.floor(acc[j] * new[j])


@inner
def _add_accumulator(total: F64, largest: I32, power: Powers, c: F32) -> None:
    """Round the sum and the accumulator down at their own positions, add, round to nearest."""
    bits = c.view(np.int32)
    up_bits, up, top_bits, top_power = power
    for j in range(c.size):
        own = np.int32(max((bits[j] >> 23) & 255, 1) - 127)
        top = max(own, largest[j])
        up_bits[j] = np.int64(1023 + largest[j] - PART_BITS + SUM_BITS - top) << 52
        top_bits[j] = np.int64(1023 - top) << 52
    for j in range(c.size):
        summed = np.floor(total[j] * up[j])
        kept = np.floor(c[j] * 2.0**PART_BITS * top_power[j])
        c[j] = np.float32((summed + kept * 2.0 ** (SUM_BITS - PART_BITS)) * 2.0**-SUM_BITS / top_power[j])


@njit
def floor_rows(a: F64, ea: I32, b: F64, eb: I32, c: F32, group: int, parts: int) -> None:
    """Add a @ b to c in place as CDNA 3 does; each group comes in `parts` runs that are aligned apart."""
    for j0 in range(0, c.shape[1], BLOCK):
        n = min(BLOCK, c.shape[1] - j0)
        e, largest, acc = np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.float64)
        total, up, down = np.empty(n, np.float64), np.empty(n, np.float64), np.empty(n, np.float64)
        power = (up.view(np.int64), up, down.view(np.int64), down)
        size = group // parts
        for k0 in range(0, a.shape[1], group):
            for i in range(a.shape[0]):
                for part in range(parts):
                    first = k0 + part * size
                    e[:] = LEAST_EXPONENT
                    largest_exponents(e, ea[i], eb, first, first + size, j0)
                    set_powers(power, e, PART_BITS)
                    acc[:] = 0.0
                    add_wide(acc, up, a[i], b, first, first + size, j0)
                    _join(total, largest, acc, e, power, part == 0)
                _add_accumulator(total, largest, power, c[i, j0 : j0 + n])
