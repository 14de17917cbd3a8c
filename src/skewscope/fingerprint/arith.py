"""Matrix multiplication exactly as the matrix units of GPUs do it, on a CPU.

A product of one row and one column runs through K in groups; `units.py` has the rule of each unit, the
kernels are in `fused_kernels.py` and `cdna_kernels.py`. What is emulated is the instruction chained over
K in ascending order. A library may cut K into slices or tiles and add those apart (split-K): emulate that
by one call per slice.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skewscope.fingerprint import cdna_kernels, fused_kernels
from skewscope.fingerprint.formats import FORMATS, INT8, exponents, holds, round_to
from skewscope.fingerprint.units import Unit, unit_of

Floats = NDArray[np.float32]

NAN_BITS = 0x7FFFFFFF
"""The one NaN that NVIDIA's matrix units return."""
NARROW_EXPONENTS = (-100, 126)
"""Exponents of products between which float32 holds them exactly."""
LATE_BLOCK = 32
DOTS = 64
"""Dot products taken from the diagonal of one small matrix product: the rest costs less than a call each."""


def matmul(
    a: ArrayLike,
    b: ArrayLike,
    c: ArrayLike | None = None,
    *,
    unit: str,
    fmt: str,
    out: str = "fp32",
    threads: int = 1,
) -> NDArray[np.float32] | NDArray[np.int32]:
    """Return a @ b + c as `unit` computes it: (M, N) float32, for out="fp16" holding fp16 values.

    a (M, K), b (K, N): float32 arrays of values of the input format `fmt` (`formats.round_to` makes
    them); c (M, N), zeros by default, is rounded to fp16 where out="fp16". For int8, c and the result are
    int32 and wrap around. K is filled up with zeros to whole groups. Raises ValueError for shapes or
    values that do not fit and for combinations without a model.
    """
    row = unit_of(unit, fmt, out)
    left, right = np.asarray(a), np.asarray(b)
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[0]:
        raise ValueError(f"shapes {left.shape} and {right.shape} do not fit a matrix product")
    shape = (left.shape[0], right.shape[1])
    start = np.zeros(shape, np.float32) if c is None else np.asarray(c)
    if start.shape != shape:
        raise ValueError(f"c has shape {start.shape}, not {shape}")
    _check_inputs(fmt, left, right)
    if row.kind == "int":
        return _integer(left, right, start)
    left, right = left.astype(np.float32, order="C"), right.astype(np.float32, order="C")
    total = round_to(start, "fp16") if out == "fp16" else start.astype(np.float32)
    total = np.array(total, dtype=np.float32, order="C")
    if all(np.isfinite(x).all() for x in (left, right, total)):
        _run(row, fmt, out, left, right, total, max(1, threads))
    else:
        total = _with_infinities(row, fmt, out, left, right, total)
    total.view(np.uint32)[np.isnan(total)] = NAN_BITS
    return total


def fused_dot(
    a: ArrayLike, b: ArrayLike, c: ArrayLike, *, unit: str, fmt: str, out: str = "fp32"
) -> NDArray[np.float32] | NDArray[np.int32]:
    """Return n dot products sum(a * b) + c as `unit` computes them: a and b (n, K), c (n,), result (n,).

    Values, formats and errors as in `matmul`.
    """
    left, right, start = np.asarray(a), np.asarray(b), np.asarray(c)
    if left.ndim != 2 or left.shape != right.shape or start.shape != left.shape[:1]:
        raise ValueError(f"shapes {left.shape}, {right.shape}, {start.shape} are not (n, K), (n, K), (n,)")
    found = []
    for i in range(0, len(left), DOTS):
        rows, columns, first = left[i : i + DOTS], right[i : i + DOTS].T, start[i : i + DOTS, None]
        first = np.broadcast_to(first, (len(rows), len(rows)))
        found.append(np.diagonal(matmul(rows, columns, first, unit=unit, fmt=fmt, out=out)))
    return np.concatenate([*found, np.zeros(0, np.int32 if fmt == "int8" else np.float32)])


def _with_infinities(row: Unit, fmt: str, out: str, a: Floats, b: Floats, c: Floats) -> Floats:
    """Where infinities or NaN enter, the answer is what IEEE 754 says: no rounding is involved."""
    with np.errstate(invalid="ignore", over="ignore"):
        special = (a.astype(np.float64) @ b.astype(np.float64) + c).astype(np.float32)
    left, right, total = (np.where(np.isfinite(x), x, np.float32(0)) for x in (a, b, c))
    _run(row, fmt, out, left, right, total, 1)
    return np.where(np.isfinite(special), total, special)


def _check_inputs(fmt: str, a: NDArray[np.floating], b: NDArray[np.floating]) -> None:
    for name, values in (("a", a), ("b", b)):
        if fmt == "int8":
            fits = bool(np.all((values >= INT8[0]) & (values <= INT8[1]) & (values == np.rint(values))))
        else:
            fits = holds(values, fmt)
        if not fits:
            raise ValueError(f"{name} holds values that {fmt} cannot; round them with formats.round_to")


def _integer(a: NDArray[np.floating], b: NDArray[np.floating], c: NDArray[np.floating]) -> NDArray[np.int32]:
    """int8 products in int32, exact modulo 2^32; float64 holds every sum of fewer than 2^38 products."""
    exact = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.int64) + c.astype(np.int64)
    return exact.astype(np.uint32).view(np.int32)


def _run(row: Unit, fmt: str, out: str, a: Floats, b: Floats, c: Floats, threads: int) -> None:
    """Add a @ b to c in place, rows shared among threads: kernels run without the interpreter's lock."""
    if row.kind == "late":
        _late(row, out, a, b, c, threads)
        return
    a, b = _padded(a, b, row.group)
    if row.split:
        order = np.arange(row.group).reshape(-1, 2).T.ravel()
        a, b = _reordered(a, b, order)
    form = FORMATS[row.input or fmt]
    ea, eb = exponents(a, form.min_exponent), exponents(b, form.min_exponent)
    narrow = _is_narrow(a, ea, b, eb)

    def work(part: slice) -> None:
        _kernel(row, out, a[part], ea[part], b, eb, c[part], narrow)

    cuts = np.linspace(0, len(a), threads + 1).astype(int)
    parts = [slice(int(x), int(y)) for x, y in pairwise(cuts) if y > x]
    if len(parts) <= 1:
        work(slice(0, len(a)))
        return
    with ThreadPoolExecutor(len(parts)) as pool:
        list(pool.map(work, parts))


def _kernel(
    row: Unit,
    out: str,
    a: Floats,
    ea: NDArray[np.int32],
    b: Floats,
    eb: NDArray[np.int32],
    c: Floats,
    narrow: bool,
) -> None:
    if row.kind == "tree":
        cdna_kernels.tree_rows(a, b, c)
        return
    if row.kind == "fused" and narrow:
        keep = fused_kernels.FP16_KEEP if out == "fp16" else row.keep
        fused_kernels.fused_narrow(a, ea, b, eb, c, row.group, row.fraction_bits, row.min_exponent, keep)
        return
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    if row.kind == "exact":
        cdna_kernels.exact_rows(wide_a, wide_b, c, row.group)
    elif row.kind == "floor":
        cdna_kernels.floor_rows(wide_a, ea, wide_b, eb, c, row.group, 2 if row.split else 1)
    else:
        keep = fused_kernels.FP16_KEEP if out == "fp16" else row.keep
        fused_kernels.fused_wide(
            wide_a, ea, wide_b, eb, c, row.group, row.fraction_bits, row.min_exponent, keep
        )


def _late(row: Unit, out: str, a: Floats, b: Floats, c: Floats, threads: int) -> None:
    """Two fp16 steps from zero per 32 products, pairs of products in turn; then c, rounded to nearest."""
    a, b = _padded(a, b, LATE_BLOCK)
    index = np.arange(LATE_BLOCK)
    order = np.concatenate([index[index % 4 < 2], index[index % 4 >= 2]])
    a, b = _reordered(a, b, order)
    step = Unit("fused", row.group, row.fraction_bits, row.min_exponent)
    for k in range(0, a.shape[1], LATE_BLOCK):
        part = np.zeros_like(c)
        rows, columns = np.ascontiguousarray(a[:, k : k + LATE_BLOCK]), b[k : k + LATE_BLOCK]
        _run(step, "fp16", out, rows, columns, part, threads)
        c[:] = round_to(part.astype(np.float64) + c, "fp16") if out == "fp16" else part + c


def _padded(a: Floats, b: Floats, group: int) -> tuple[Floats, Floats]:
    extra = -a.shape[1] % group
    if not extra:
        return a, b
    return np.pad(a, ((0, 0), (0, extra))), np.pad(b, ((0, extra), (0, 0)))


def _reordered(a: Floats, b: Floats, order: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Put the products of every len(order) consecutive ones into this order."""
    index = np.arange(a.shape[1]).reshape(-1, len(order))[:, order].ravel()
    return np.ascontiguousarray(a[:, index]), np.ascontiguousarray(b[index])


def _is_narrow(a: Floats, ea: NDArray[np.int32], b: Floats, eb: NDArray[np.int32]) -> bool:
    if not a.size or not b.size:
        return True
    largest = int(ea.max()) + int(eb.max()) + 1
    used_a, used_b = ea[a != 0], eb[b != 0]
    if not used_a.size or not used_b.size:
        return True
    smallest = int(used_a.min()) + int(used_b.min())
    return smallest >= NARROW_EXPONENTS[0] and largest <= NARROW_EXPONENTS[1]
