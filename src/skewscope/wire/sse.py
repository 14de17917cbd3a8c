"""Server-sent events counted in a byte stream (WHATWG HTML, 9.2.6): a blank line after a data field."""

from __future__ import annotations

import numpy as np

from skewscope.core.tables import Array
from skewscope.wire.jit import njit
from skewscope.wire.layout import Row, i64

DATA_FIELD = np.frombuffer(b"data:", np.uint8)
OTHER_LINE = 100


@njit
def reset(f: Row) -> None:
    """Stand at the start of a line and of an event."""
    f["sse_line"] = 0
    f["sse_data"] = 0
    f["sse_cr"] = 0


@njit
def spoil(f: Row) -> None:
    """Unknown bytes passed: the line under way is not known."""
    f["sse_line"] = OTHER_LINE
    f["sse_data"] = 0
    f["sse_cr"] = 0


@njit
def scan(f: Row, src: Array, at: int, n: int) -> None:
    """Count in f["events"] the events that end in n bytes. Lines end with LF, CR or CRLF."""
    line = i64(f["sse_line"])
    data = i64(f["sse_data"])
    cr = i64(f["sse_cr"])
    events = i64(f["events"])
    for k in range(n):
        c = src[at + k]
        if c == 10 and cr == 1:
            cr = 0
        elif c == 10 or c == 13:
            cr = 1 if c == 13 else 0
            if line == 0:
                events += data
                data = 0
            line = 0
        else:
            cr = 0
            if line < 5 and c == DATA_FIELD[line]:
                line += 1
                if line == 5:
                    data = 1
            elif line < 6:
                line = OTHER_LINE
    f["sse_line"] = line
    f["sse_data"] = data
    f["sse_cr"] = cr
    f["events"] = min(events, 1 << 30)
