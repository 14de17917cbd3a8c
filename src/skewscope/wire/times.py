"""Capture times that cannot be: one wild timestamp must not stretch a run of seconds over years.

A time that lies more than a day from where its tap stands is believed only if most of the packets
behind it agree with it more than with the time before. Otherwise the packet gets the time before.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.tables import Array
from skewscope.wire.jit import njit
from skewscope.wire.load import bytes_of, le32

LEAP_NS = 86_400_000_000_000
"""One day: captures pause for less; clocks that were never set, and damaged headers, miss by more."""
WITNESSES = 16
"""Packets asked for their opinion: more than the bad times in a row that drivers were seen to write."""
NOW, KNOWN, MENDED, LEAPS = range(4)


def new_clock() -> Array:
    """Return the state of one tap: int64 (4,): time reached, whether known, times mended, leaps."""
    return np.zeros(4, dtype=np.int64)


@njit
def mend(ts: Array, clock: Array, last: bool) -> int:
    """Set impossible times of ts int64 (n,) to the time before; returns how many rows are settled.

    Rows behind that number wait for their witnesses, unless this is the `last` batch. Times must lie in
    0..2^62 ns, so that differences do not overflow.
    """
    n = len(ts)
    if clock[KNOWN] == 0:
        if n == 0 or (n < WITNESSES and not last):
            return 0
        head = ts[: min(n, WITNESSES)].copy()
        middle = np.sort(head)[(len(head) - 1) // 2]
        for i in range(len(head)):  # the first time that agrees with most
            if abs(head[i] - middle) <= LEAP_NS:
                clock[NOW] = head[i]
                break
        clock[KNOWN] = 1
    for i in range(n):
        if abs(ts[i] - clock[NOW]) <= LEAP_NS:
            clock[NOW] = ts[i]
            continue
        behind = min(WITNESSES, n - i - 1)
        if behind < WITNESSES and not last:
            return i
        new, old = 0, 0
        for k in range(i + 1, i + 1 + behind):
            new += abs(ts[k] - ts[i]) <= LEAP_NS
            old += abs(ts[k] - clock[NOW]) <= LEAP_NS
        if new > old:
            clock[LEAPS] += 1
            clock[NOW] = ts[i]
        else:
            clock[MENDED] += 1
            ts[i] = clock[NOW]
    return n


@njit
def take_erf(buf: Array, at: Array, captured: Array, interface: Array, erf: Array, ts: Array) -> None:
    """Replace the times of ERF records by the finer ones of the cards that took them.

    Each begins with 64 bits of 2^-32 s, little-endian (https://wiki.wireshark.org/ERF). The first four and
    ts are of shape (n,); erf, bool (interfaces,), says which interfaces deliver such records.
    """
    data = bytes_of(buf)
    for i in range(len(at)):
        if captured[i] >= 16 and interface[i] >= 0 and erf[interface[i]]:
            fraction, seconds = le32(data, at[i]), le32(data, at[i] + 4)
            ts[i] = seconds * 1_000_000_000 + (fraction * 1_000_000_000 + (1 << 31) >> 32)
