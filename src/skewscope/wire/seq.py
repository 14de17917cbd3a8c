"""TCP sequence arithmetic modulo 2^32 (RFC 9293, 3.4), and its extension to 64 bits."""

from __future__ import annotations

from skewscope.wire.jit import njit

MASK = 0xFFFFFFFF
HALF = 0x80000000
WRAP = 0x100000000


@njit
def delta(a: int, b: int) -> int:
    """Return a - b as the signed distance in [-2^31, 2^31) on the circle of 2^32."""
    d = (a - b) & MASK
    if d >= HALF:
        return d - WRAP
    return d


@njit
def extend(seq: int, near: int) -> int:
    """Return the 64-bit position whose low 32 bits are `seq` and which lies closest to `near`."""
    return near + delta(seq, near & MASK)
