"""The rules of matrix units in exact rational arithmetic: slow, obvious, no code shared with the product."""

from __future__ import annotations

from fractions import Fraction
from math import floor

MIN_EXPONENT = {"fp16": -14, "bf16": -126, "tf32": -126, "e4m3": -6, "e5m2": -14, "fp32": -126}
FNUZ = {"e4m3": -7, "e5m2": -15}


def exponent(x: Fraction) -> int:
    """floor(log2|x|) of a nonzero number."""
    n, d = abs(x.numerator), x.denominator
    e = n.bit_length() - d.bit_length()
    return e if Fraction(2) ** e <= abs(x) else e - 1


def field(x: Fraction, least: int) -> int:
    return max(exponent(x), least) if x else least


def towards_zero(x: Fraction, step: Fraction) -> Fraction:
    return Fraction(floor(abs(x) / step)) * step * (1 if x >= 0 else -1)


def down(x: Fraction, step: Fraction) -> Fraction:
    return Fraction(floor(x / step)) * step


def nearest(x: Fraction, bits: int, least: int, top: int) -> float:
    """Round to nearest even with `bits` fraction bits, least exponent, infinite from 2^(top + 1) on."""
    step = Fraction(2) ** (field(x, least) - bits)
    value = Fraction(round(x / step)) * step
    if abs(value) >= Fraction(2) ** (top + 1):
        return float("inf") if value > 0 else float("-inf")
    return float(value)


def nearest_fp32(x: Fraction) -> float:
    return nearest(x, 23, -126, 127)


def cut(x: Fraction, bits: int) -> float:
    return float(towards_zero(x, Fraction(2) ** (field(x, -126) - bits)))


def fused(a, b, c, *, fmt, group, bits, least, keep, out="fp32"):  # type: ignore[no-untyped-def]
    a, b, c = a.tolist(), b.tolist(), float(c)
    for k in range(0, len(a), group):
        pairs = [(Fraction(x), Fraction(y)) for x, y in zip(a[k : k + group], b[k : k + group], strict=True)]
        e = max(field(x, MIN_EXPONENT[fmt]) + field(y, MIN_EXPONENT[fmt]) for x, y in pairs)
        e = max(e, field(Fraction(c), -126), least)
        step = Fraction(2) ** (e - bits)
        terms = [x * y for x, y in pairs] + [Fraction(c)]
        total = sum((towards_zero(t, step) for t in terms), Fraction(0))
        c = nearest(total, 10, -14, 15) if out == "fp16" else cut(total, keep)
    return c


def exact(a, b, c, *, group):  # type: ignore[no-untyped-def]
    a, b, c = a.tolist(), b.tolist(), float(c)
    for k in range(0, len(a), group):
        terms = [Fraction(x) * Fraction(y) for x, y in zip(a[k : k + group], b[k : k + group], strict=True)]
        c = nearest_fp32(sum(terms, Fraction(c)))
    return c


def floored(a, b, c, *, fmt, group, parts):  # type: ignore[no-untyped-def]
    least = FNUZ[fmt] if parts == 2 else MIN_EXPONENT[fmt]
    a, b, c = a.tolist(), b.tolist(), float(c)
    for k in range(0, len(a), group):
        runs = []
        for part in range(parts):
            pairs = [(Fraction(a[i]), Fraction(b[i])) for i in range(k + part, k + group, parts)]
            e = max(field(x, least) + field(y, least) for x, y in pairs)
            step = Fraction(2) ** (e - 24)
            runs.append((e, sum((towards_zero(x * y, step) for x, y in pairs), Fraction(0))))
        e = max(e for e, _ in runs)
        total = sum((down(s, Fraction(2) ** (e - 24)) for _, s in runs), Fraction(0))
        top = max(e, field(Fraction(c), -126))
        c = nearest_fp32(
            down(total, Fraction(2) ** (top - 31)) + down(Fraction(c), Fraction(2) ** (top - 24))
        )
    return c
