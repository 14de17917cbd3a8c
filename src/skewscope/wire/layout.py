"""State and row layouts shared by the stream kernels: what is kept per flow, direction and span.

A *slot* holds one followed flow; direction `way` of slot k is *stream* 2*k + way. Positions are
sequence numbers extended to 64 bits (wire/seq.py), so that nothing after reassembly wraps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from skewscope.core.schemas import HTTP, MESSAGES, RECORDS
from skewscope.core.tables import Array, Schema

Row: TypeAlias = Any
"""One record of a structured array, changed in place. Its fields have no static types."""
Rows: TypeAlias = Any
"""A structured array."""

i64: Callable[[Any], int] = cast("Callable[[Any], int]", np.int64)
"""Signed 64-bit, in the kernels too: Numba would mix unsigned and signed numbers to floats."""

# Span kinds: what reassembly tells the framers, in the order in which it happened.
DATA, HOLE, CLOSE, OPEN = 0, 1, 2, 3

# Protocols of a flow. OPAQUE is still tested. GRPC is a name for reports: such a flow is framed as HTTP2.
UNKNOWN, GLOO, HTTP1, TLS, OPAQUE, HTTP2, GRPC, ZMTP, NCCL = 0, 1, 2, 3, 4, 5, 6, 7, 8
PROTOCOLS = ("unknown", "gloo", "http1", "tls", "opaque", "http2", "grpc", "zmtp", "nccl")

CLOSED, TENTATIVE, RUNNING = 0, 1, 2
"""States of a direction. closed: no position known. tentative: position from a packet without data,
which may be a keep-alive probe one byte low. running: position from a SYN or from data."""

FAR = 1 << 26
"""Bytes: a segment further away than the largest plausible window belongs to no present stream."""

SPAN = np.dtype(
    [
        ("kind", "u1"),
        ("way", "u1"),
        ("head", "u1"),  # 1 = starts with the first payload byte of a segment
        ("tap", "u2"),
        ("stream", "i4"),
        ("flow", "u4"),
        ("src", "u4"),
        ("dst", "u4"),
        ("at", "i8"),  # first known byte: offset in the batch, or -2 - offset in the arena
        ("size", "i8"),  # known bytes
        ("skip", "i8"),  # unknown bytes after them: cut off by the snap length, or a hole
        ("pos", "i8"),
        ("ts", "i8"),
        ("frame", "u8"),
    ],
    align=True,
)

SLOT = np.dtype(
    [
        ("flow", "u4"),
        ("a", "u4"),  # sender address of way 0
        ("b", "u4"),
        ("tap", "u2"),
        ("used", "u1"),
        ("newer", "i4"),  # neighbours in order of last packet, -1 = none; `older` also links free slots
        ("older", "i4"),
        ("ts", "i8"),
    ],
    align=True,
)

STREAM = np.dtype(
    [
        ("state", "u1"),  # CLOSED, TENTATIVE, RUNNING
        ("isn_known", "u1"),
        ("strays", "u1"),
        ("isn", "i8"),
        ("next", "i8"),  # next position to deliver
        ("acked", "i8"),  # highest position that the other side acknowledged, 0 = none
        ("fin", "i8"),  # position of the FIN, 0 = none
        ("stray_next", "i8"),
        ("first", "i4"),  # held segments, ordered by position; -1 = none
        ("last", "i4"),
        ("held", "i4"),
        ("held_bytes", "i8"),
    ],
    align=True,
)

HELD = np.dtype(
    [
        ("pos", "i8"),
        ("at", "i8"),
        ("size", "i8"),
        ("skip", "i8"),
        ("ts", "i8"),
        ("frame", "u8"),
        ("next", "i4"),
        ("head", "u1"),
        ("live", "u1"),
    ],
    align=True,
)

LINK = np.dtype(
    [
        ("proto", "u1"),
        ("confirms", "u1"),  # elements found where expected; from STICKY on the protocol stays
        ("misses", "u1"),
        ("asked", "u1"),  # HTTP requests whose response head has not been seen
        ("tries", "u2"),
        ("frames", "u1"),  # HTTP/2 frames seen in a row on a flow without protocol
        ("asks", "i8"),  # two bits each, oldest lowest: 0 other, 1 HEAD, 2 CONNECT
        ("ways", "u1"),  # directions with data while there was no protocol: bits
        ("sizes", "u1"),  # NCCL sizes seen in a row on a flow without protocol
        ("due", "i8"),  # position of the next one
    ],
    align=True,
)

FRAMER = np.dtype(
    [
        ("phase", "u1"),
        ("got", "i4"),  # bytes in the carry row
        ("left", "i8"),  # bytes until the element ends
        ("ts", "i8"),
        ("frame", "u8"),
        ("kind", "u1"),
        ("collective", "u1"),
        ("tag", "u4"),
        ("nbytes", "i8"),
        # HTTP only, from here on
        ("stream", "u4"),  # HTTP/2 stream of the row to emit, 0 for HTTP/1
        ("synced", "u1"),  # an element was found before
        ("head_bytes", "i4"),
        ("length", "i8"),  # content length, -1 = not given
        ("target_bytes", "i4"),  # kept in the second half of the carry row
        ("status", "u2"),
        ("method", "u1"),
        ("response", "u1"),
        ("chunked", "u1"),
        ("upgrade", "u1"),  # the head names h2c in its Upgrade field
        ("streaming", "u1"),
        ("cut", "u1"),  # the piece has unknown bytes
        ("events", "i4"),
        ("sse_line", "i4"),  # bytes of "data:" seen at the start of the line; more = some other line
        ("sse_data", "u1"),  # the event has a data field
        ("sse_cr", "u1"),
        # HTTP/2 only, from here on
        ("type", "u1"),  # of the frame under way
        ("flags", "u1"),
        ("prefix", "i4"),  # bytes before the frame's content: pad length, priority, promised stream
        ("pad", "i4"),
        ("entry", "i4"),  # row of the DATA frame's stream, 0 = not followed
        ("block", "u4"),  # stream of the header block under way, 0 = none
        ("block_flags", "u1"),  # of the frame that began it
        ("block_push", "u1"),
        ("block_bytes", "i4"),
        ("block_cut", "u1"),  # only its beginning is known
        ("waiting", "u1"),  # for its fields, which are decoded outside the kernels
        ("head", "u1"),  # what they are: row kind, 0 = trailers or not known
        ("content", "u1"),
        ("target", "i4"),
        ("end_status", "u2"),
        ("tables", "u4"),  # counts how often the HPACK table was lost
        ("paid_ns", "i8"),  # limits header blocks per second
        ("first", "i4"),  # followed streams of this direction, the latest first; 0 = none
        ("count", "i4"),
    ],
    align=True,
)

H2STREAM = np.dtype(
    [
        ("next", "i4"),  # the next one of the same direction or the next free one, 0 = none
        ("id", "u4"),
        ("owner", "i4"),  # the direction, -1 = free
        ("hint", "i4"),  # no part of the row: where a stream with this row's number as hash may be
        ("content", "u1"),  # what its DATA carries: http2_words.OTHER, EVENTS or MESSAGES
        ("known", "u1"),  # the place in that is known
        ("got", "u1"),  # bytes of a gRPC prefix
        ("size", "i8"),  # gRPC message length, as far as read
        ("left", "i8"),  # bytes until the message ends
        ("probe", "i8"),  # length that a first message must have after the place was lost, 0 = any
        ("events", "i4"),
        ("sse_line", "i4"),
        ("sse_data", "u1"),
        ("sse_cr", "u1"),
    ],
    align=True,
)
"""One direction of an HTTP/2 stream. Row 0 is none: its `next` is the first free row, its `id` counts
the rows in use."""

CARRY = 512
"""Bytes of an unfinished line or header kept per stream; a longer line is parsed by its beginning."""

# Cells of the counter arrays.
NEWEST, OLDEST, FREE_SLOT, FREE_HELD, COST, LIVE, SPANS, EVICTED, STRAYED, USED, TCP_CELLS = range(11)
MESSAGE_ROWS, HTTP_ROWS, RECORD_ROWS, TEXT_BYTES, TEXT_CUTS, PIECES, PAUSED, OUT_CELLS = range(8)

# Cells of the limits array (wire/streams.py, Limits).
L_SEGMENTS, L_BYTES, L_TOTAL, L_AGE, L_IDLE, LIMIT_CELLS = range(6)


class Batch(NamedTuple):
    """The columns of a `packets` table that reassembly needs, each of shape (n,)."""

    ts: Array
    frame: Array
    tap: Array
    flow: Array
    way: Array
    src: Array
    dst: Array
    proto: Array
    fault: Array
    payload: Array
    captured: Array
    at: Array
    seq: Array
    ack: Array
    flags: Array


class Tcp(NamedTuple):
    """Reassembly state; arrays grow between kernel calls, never inside."""

    slot_of: Array
    slots: Rows
    streams: Rows
    held: Rows
    cells: Array
    limits: Array
    spans: Rows


class Framing(NamedTuple):
    """Framer state per slot (links), per stream (framers, carry), per HTTP/2 stream; protocols by flow."""

    links: Rows
    framers: Rows
    carry: Array
    h2: Rows
    protocols: Array


class Out(NamedTuple):
    """Rows made by one kernel call; `cells` counts them. Targets are cuts into `text`.

    pieces: (n, 4) of header blocks: stream, byte reference as in SPAN, size, 1 = the block's first.
    cells[PAUSED]: 1 + the stream whose header block is complete and must be decoded before going on.
    """

    messages: Rows
    http: Rows
    records: Rows
    text: Array
    cuts: Array
    pieces: Array
    cells: Array


def row_type(schema: Schema) -> np.dtype[np.void]:
    """Return the structured dtype of one row of a schema."""
    return np.dtype([(name, column.dtype) for name, column in schema.columns.items()], align=True)


def new_out(rows: int) -> Out:
    """Return empty output arrays for `rows` rows of each table and 16 bytes of target per row."""
    return Out(
        np.zeros(rows, row_type(MESSAGES)),
        np.zeros(rows, row_type(HTTP)),
        np.zeros(rows, row_type(RECORDS)),
        np.zeros(rows * 16, np.uint8),
        np.zeros((rows, 2), np.int64),
        np.zeros((rows, 4), np.int64),
        np.zeros(OUT_CELLS, np.int64),
    )
