"""Blocks of a Linux packet ring (TPACKET_V3): bytes in, record columns out. Sans-IO.

Layout: Linux, include/uapi/linux/if_packet.h (tpacket_block_desc, tpacket3_hdr) and
Documentation/networking/packet_mmap.rst. Numbers are in the machine's byte order, which is little-endian on
everything this runs on; the kernel fills blocks, user space reads and returns them.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.tables import Array
from skewscope.wire.jit import inner, njit

STATUS_AT, COUNT_AT, FIRST_AT = 8, 12, 16
"""Offsets in a block: who owns it, how many packets it holds, where the first one is."""
USER_OWNS = 1
NEXT_AT, SECONDS_AT, NANOSECONDS_AT, CAPTURED_AT, WIRE_AT, FRAME_AT = 0, 4, 8, 12, 16, 24
"""Offsets in a packet's header; FRAME_AT holds the 16-bit offset of the frame from the header."""
HEADER_BYTES = 48


@inner
def _u32(buf: Array, at: int) -> int:
    value = np.int64(buf[at]) | (np.int64(buf[at + 1]) << 8)
    return int(value | (np.int64(buf[at + 2]) << 16) | (np.int64(buf[at + 3]) << 24))


@njit
def walk_block(block: Array, ts: Array, at: Array, captured: Array, wire: Array) -> int:
    """Fill the record columns from one block (uint8, shape (size,)); returns the number of packets.

    Columns are int64 of shape (n,); what goes beyond n is left out.
    A header or frame that would lie outside the block ends the walk: the kernel does not make such a block.
    """
    size = len(block)
    count = min(_u32(block, COUNT_AT), len(ts))
    pos = _u32(block, FIRST_AT)
    n = 0
    while n < count and pos + HEADER_BYTES <= size:
        frame = pos + np.int64(block[pos + FRAME_AT]) + (np.int64(block[pos + FRAME_AT + 1]) << 8)
        length = _u32(block, pos + CAPTURED_AT)
        if frame + length > size:
            break
        ts[n] = _u32(block, pos + SECONDS_AT) * 1_000_000_000 + _u32(block, pos + NANOSECONDS_AT)
        at[n] = frame
        captured[n] = length
        wire[n] = _u32(block, pos + WIRE_AT)
        n += 1
        step = _u32(block, pos + NEXT_AT)
        if step == 0:
            break
        pos += step
    return n
