"""Arithmetic of counters that wrap: TCP sequence numbers (2^32) and IP ids (2^16). RFC 1982."""

from __future__ import annotations

from skewscope.core.jit import njit


@njit
def serial32(a: int, b: int) -> int:
    """Return a - b on the 2^32 circle, in [-2^31, 2^31)."""
    return ((a - b + 0x80000000) & 0xFFFFFFFF) - 0x80000000


@njit
def serial16(a: int, b: int) -> int:
    """Return a - b on the 2^16 circle, in [-2^15, 2^15)."""
    return ((a - b + 0x8000) & 0xFFFF) - 0x8000
