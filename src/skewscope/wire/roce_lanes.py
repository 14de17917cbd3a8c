"""What is remembered per direction of a RoCE queue pair: bounded tables, and rows held back at a gap.

A *lane* is (sender, receiver, destination queue pair, space): requests count packets in their own
sequence, READ responses in that of the requester (IBTA volume 1, 9.7.3), so one queue pair has two
spaces. A *pair* is what one direction between two addresses has shown whatever the queue pair.
Both live in set-associative tables: the least recently used of a set makes room, always the same
one for the same packets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from skewscope.core.schemas import HOLES, MESSAGES
from skewscope.core.tables import Array
from skewscope.wire.jit import inner
from skewscope.wire.layout import Row, Rows, row_type

WAYS = 8
HELD_ROWS = 16
"""Messages held back behind a gap: NCCL has at most 8 requests under way per connection and channel."""

LANE = np.dtype(
    [
        ("used", "u1"),
        ("space", "u1"),  # 0 requests, 1 READ responses
        ("tap", "u2"),
        ("src", "u4"),
        ("dst", "u4"),
        ("qp", "u4"),
        ("flow", "u4"),
        ("way", "u1"),
        ("loose", "u1"),  # a READ took an unknown count of sequence numbers
        ("last_ns", "i8"),
        ("next", "i4"),  # packet sequence number expected
        ("stray_next", "i4"),
        ("strays", "i4"),
        ("mtu", "i4"),  # largest payload seen
        # the message in progress
        ("phase", "u1"),  # LOST, INSIDE
        ("holed", "u1"),
        ("ts", "i8"),
        ("frame", "u8"),
        ("bytes", "i8"),
        # a finished WRITE without immediate: the bulk of a message, or a transfer of its own
        ("bulk", "u1"),
        ("bulk_ts", "i8"),
        ("bulk_end", "i8"),
        ("bulk_frame", "u8"),
        ("bulk_bytes", "i8"),
        # an open gap in the sequence, and the state at its start
        ("gap", "u1"),
        ("gap_at", "i4"),
        ("gap_to", "i4"),
        ("gap_ns", "i8"),
        ("kept_phase", "u1"),
        ("kept_holed", "u1"),
        ("kept_ts", "i8"),
        ("kept_frame", "u8"),
        ("kept_bytes", "i8"),
        ("kept_bulk", "u1"),
        ("kept_bulk_ts", "i8"),
        ("kept_bulk_end", "i8"),
        ("kept_bulk_frame", "u8"),
        ("kept_bulk_bytes", "i8"),
        ("held", "i4"),
    ],
    align=True,
)

PAIR = np.dtype(
    [
        ("used", "u1"),
        ("cleared", "u1"),  # the receiver wrote a clear to send
        ("src", "u4"),
        ("dst", "u4"),
        ("last_ns", "i8"),
        ("nak_psn", "i4"),
        ("nak_ns", "i8"),
    ],
    align=True,
)

MADE = np.dtype(
    [("ts", "i8"), ("end", "i8"), ("frame", "u8"), ("nbytes", "i8"), ("kind", "u1"), ("framing", "u1")],
    align=True,
)

LOST, INSIDE = 0, 1

# Cells of the counter array.
MESSAGE_ROWS, HOLE_ROWS, SWEEP_NS, SWEEP_AT, EVICTED, REPEATED, CELLS = range(7)


class Lanes(NamedTuple):
    """State of one tap: `lanes` (sets * WAYS,), `held` (sets * WAYS, HELD_ROWS), `pairs` (sets * WAYS,)."""

    lanes: Rows
    held: Rows
    pairs: Rows
    cells: Array


class Made(NamedTuple):
    """Rows made by one kernel call; cells count them."""

    messages: Rows
    holes: Rows


def new_lanes(sets: int, pair_sets: int) -> Lanes:
    """Return empty state; memory is touched only as lanes are used."""
    return Lanes(
        np.zeros(sets * WAYS, LANE),
        np.zeros((sets * WAYS, HELD_ROWS), MADE),
        np.zeros(pair_sets * WAYS, PAIR),
        np.zeros(CELLS, np.int64),
    )


def new_made(rows: int) -> Made:
    """Return empty output arrays."""
    return Made(np.zeros(rows, row_type(MESSAGES)), np.zeros(rows, row_type(HOLES)))


@inner
def hashed(a: int, b: int, c: int, sets: int) -> int:
    """Return the set of a key, 0 <= set < sets."""
    h = (a * 0x9E3779B1 + b * 0x85EBCA6B + c * 0xC2B2AE35) & 0xFFFFFFFF
    h ^= h >> 15
    h = (h * 0x2C1B3C6D) & 0xFFFFFFFF
    h ^= h >> 13
    return h % sets


@inner
def pair_at(pairs: Rows, src: int, dst: int, ts: int) -> int:
    """Return the index of a pair, over the least recently used of its set where new."""
    first = hashed(src, dst, 0, len(pairs) // WAYS) * WAYS
    oldest = first
    for k in range(first, first + WAYS):
        p = pairs[k]
        if p["used"] == 1 and p["src"] == src and p["dst"] == dst:
            p["last_ns"] = ts
            return k
        if pairs[oldest]["used"] == 1 and (p["used"] == 0 or p["last_ns"] < pairs[oldest]["last_ns"]):
            oldest = k
    p = pairs[oldest]
    p["used"] = 1
    p["cleared"] = 0
    p["src"] = src
    p["dst"] = dst
    p["last_ns"] = ts
    p["nak_psn"] = -1
    p["nak_ns"] = 0
    return oldest


@inner
def lane_at(lanes: Rows, src: int, dst: int, qp: int, space: int) -> int:
    """Return the index of a lane if it is known, else -1 - the index whose lane must make room."""
    first = hashed(src, dst, 2 * qp + space, len(lanes) // WAYS) * WAYS
    oldest = first
    for k in range(first, first + WAYS):
        lane = lanes[k]
        same = lane["src"] == src and lane["dst"] == dst and lane["qp"] == qp
        if lane["used"] == 1 and same and lane["space"] == space:
            return k
        if lanes[oldest]["used"] == 1 and (lane["used"] == 0 or lane["last_ns"] < lanes[oldest]["last_ns"]):
            oldest = k
    return -1 - oldest


@inner
def row(lane: Row, made: Row, out: Made, cells: Array) -> None:
    """Append a `messages` row."""
    n = cells[MESSAGE_ROWS]
    cells[MESSAGE_ROWS] = n + 1
    to = out.messages[n]
    to["ts_ns"] = made["ts"]
    to["end_ns"] = made["end"]
    to["tap"] = lane["tap"]
    to["frame"] = made["frame"]
    to["flow"] = lane["flow"]
    to["way"] = lane["way"]
    to["src"] = lane["src"]
    to["dst"] = lane["dst"]
    to["framing"] = made["framing"]
    to["kind"] = made["kind"]
    to["collective"] = 0
    to["tag"] = 0
    to["nbytes"] = made["nbytes"]


@inner
def release(state: Lanes, k: int, ts: int, out: Made) -> None:
    """Give a gap up as one of the capture: the rows held behind it stand, and it becomes a hole."""
    lane = state.lanes[k]
    if lane["gap"] == 0:
        return
    for j in range(lane["held"]):
        row(lane, state.held[k, j], out, state.cells)
    n = state.cells[HOLE_ROWS]
    state.cells[HOLE_ROWS] = n + 1
    to = out.holes[n]
    to["ts_ns"] = ts
    to["tap"] = lane["tap"]
    to["flow"] = lane["flow"]
    to["way"] = lane["way"]
    to["src"] = lane["src"]
    to["dst"] = lane["dst"]
    to["seq"] = lane["gap_at"]
    to["nbytes"] = ((lane["gap_to"] - lane["gap_at"]) & 0xFFFFFF) * lane["mtu"]
    lane["gap"] = 0
    lane["held"] = 0


@inner
def keep(lane: Row) -> None:
    """Remember the message in progress at the start of a gap."""
    lane["kept_phase"] = lane["phase"]
    lane["kept_holed"] = lane["holed"]
    lane["kept_ts"] = lane["ts"]
    lane["kept_frame"] = lane["frame"]
    lane["kept_bytes"] = lane["bytes"]
    lane["kept_bulk"] = lane["bulk"]
    lane["kept_bulk_ts"] = lane["bulk_ts"]
    lane["kept_bulk_end"] = lane["bulk_end"]
    lane["kept_bulk_frame"] = lane["bulk_frame"]
    lane["kept_bulk_bytes"] = lane["bulk_bytes"]


@inner
def rewind(lane: Row) -> None:
    """Go back to the start of the gap: the sender does so too, and what came behind it was dropped."""
    lane["phase"] = lane["kept_phase"]
    lane["holed"] = lane["kept_holed"]
    lane["ts"] = lane["kept_ts"]
    lane["frame"] = lane["kept_frame"]
    lane["bytes"] = lane["kept_bytes"]
    lane["bulk"] = lane["kept_bulk"]
    lane["bulk_ts"] = lane["kept_bulk_ts"]
    lane["bulk_end"] = lane["kept_bulk_end"]
    lane["bulk_frame"] = lane["kept_bulk_frame"]
    lane["bulk_bytes"] = lane["kept_bulk_bytes"]
    lane["next"] = lane["gap_at"]
    lane["gap"] = 0
    lane["held"] = 0
