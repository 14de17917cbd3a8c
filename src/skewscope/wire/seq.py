"""TCP sequence numbers extended to 64 bits (RFC 9293, 3.4); the circle itself is core.serial."""

from __future__ import annotations

from skewscope.core.serial import serial32 as delta
from skewscope.wire.jit import njit

__all__ = ["MASK", "WRAP", "delta", "extend"]

MASK = 0xFFFFFFFF
WRAP = 0x100000000


@njit
def extend(seq: int, near: int) -> int:
    """Return the 64-bit position whose low 32 bits are `seq` and which lies closest to `near`."""
    return near + delta(seq, near & MASK)
