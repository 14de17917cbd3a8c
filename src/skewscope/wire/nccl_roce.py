"""What a RoCE message is: NCCL's WRITEs with immediate and clears to send, and other RDMA transfers.

NCCL 2.30 (net_ib): the receiver WRITEs a 64-byte entry (48 in builds with 4 devices per port; several at
once for grouped receives) into the sender's queue: *clear to send*, kind 3. The sender WRITEs the data;
the last or only packet carries an immediate, by default the message's size. With adaptive routing the bulk
goes first in a WRITE without immediate, then a WRITE Only of no bytes carries it: one message.

Everything else that moves bytes (SEND, READ responses, WRITE without immediate) makes rows of
framing RDMA, kind 0: transfers of KV caches, storage. They are no collective traffic.
"""

from __future__ import annotations

from skewscope.wire.jit import inner
from skewscope.wire.layout import Row, i64
from skewscope.wire.roce_lanes import HELD_ROWS, INSIDE, LOST, Lanes, Made, pair_at, release, row

FRAMING_NCCL_ROCE = 3
FRAMING_RDMA = 5
DATA, CLEAR_TO_SEND = 0, 3

MAX_MESSAGE_BYTES = 1 << 30
MAX_RECEIVES = 8
SMALL_BYTES = 8192
"""NCCL splits bulk and immediate above this size only."""

# BTH opcodes, lower 5 bits (IBTA volume 1, table 38).
SEND_FIRST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM = 0x00, 0x03, 0x04, 0x05
WRITE_FIRST, WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM = 0x06, 0x08, 0x09, 0x0A, 0x0B
READ_REQUEST, READ_FIRST, READ_LAST, READ_ONLY = 0x0C, 0x0D, 0x0F, 0x10
ACKNOWLEDGE, COMPARE_SWAP, FETCH_ADD, SEND_LAST_INV, SEND_ONLY_INV = 0x11, 0x13, 0x14, 0x16, 0x17
MIDDLES = (1 << 0x01) | (1 << 0x07) | (1 << 0x0E)
STARTS = (1 << 0x00) | (1 << 0x04) | (1 << 0x05) | (1 << 0x06) | (1 << 0x0A) | (1 << 0x0B) | (1 << 0x0D)
STARTS |= (1 << READ_ONLY) | (1 << SEND_ONLY_INV)
ENDS = (1 << 0x02) | (1 << 0x03) | (1 << 0x04) | (1 << 0x05) | (1 << 0x08) | (1 << 0x09) | (1 << 0x0A)
ENDS |= (1 << 0x0B) | (1 << READ_LAST) | (1 << READ_ONLY) | (1 << SEND_LAST_INV) | (1 << SEND_ONLY_INV)
MOVES = STARTS | ENDS | MIDDLES


@inner
def _emit(
    state: Lanes, k: int, ts: int, end: int, frame: int, nbytes: int, kind: int, framing: int, out: Made
) -> None:
    """Make a message row, or hold it back behind an open gap."""
    lane = state.lanes[k]
    if lane["gap"] == 1 and lane["held"] == HELD_ROWS:
        release(state, k, end if end > 0 else ts, out)
    j = lane["held"]
    to = state.held[k, j if lane["gap"] == 1 else 0]
    to["ts"] = ts
    to["end"] = end
    to["frame"] = frame
    to["nbytes"] = nbytes
    to["kind"] = kind
    to["framing"] = framing
    if lane["gap"] == 1:
        lane["held"] = j + 1
    else:
        row(lane, to, out, state.cells)


@inner
def flush_bulk(state: Lanes, k: int, out: Made) -> None:
    """A WRITE without immediate that none followed: a transfer."""
    lane = state.lanes[k]
    if lane["bulk"] == 1:
        lane["bulk"] = 0
        _emit(
            state, k, lane["bulk_ts"], lane["bulk_end"], lane["bulk_frame"], lane["bulk_bytes"],
            i64(DATA), i64(FRAMING_RDMA), out,
        )  # fmt: skip


@inner
def _with_immediate(state: Lanes, k: int, p: Row, cleared: int, out: Made) -> None:
    """A WRITE with immediate ended: a message of NCCL if its signs are there."""
    lane = state.lanes[k]
    immediate = i64(p["immediate"])
    size = i64(lane["bytes"])
    if size == 0 and lane["bulk"] == 1:
        lane["ts"] = lane["bulk_ts"]
        lane["frame"] = lane["bulk_frame"]
        size = i64(lane["bulk_bytes"])
        lane["bulk"] = 0
    flush_bulk(state, k, out)
    exact = immediate == size
    # Bytes out of sight: part of the message, or the bulk that went before.
    short = (lane["holed"] == 1 and immediate > size) or (size == 0 and immediate > SMALL_BYTES)
    if short and immediate <= MAX_MESSAGE_BYTES:
        size = immediate
    framing = i64(FRAMING_NCCL_ROCE if exact or cleared == 1 else FRAMING_RDMA)
    _emit(state, k, lane["ts"], p["ts_ns"], lane["frame"], size, i64(DATA), framing, out)


@inner
def _ended(state: Lanes, k: int, p: Row, out: Made) -> None:
    """The last packet of a message came."""
    lane = state.lanes[k]
    op = i64(p["opcode"]) & 0x1F
    ts = i64(p["ts_ns"])
    size = i64(lane["bytes"])
    if op in (WRITE_LAST_IMM, WRITE_ONLY_IMM):
        pair = pair_at(state.pairs, i64(lane["src"]), i64(lane["dst"]), ts)
        _with_immediate(state, k, p, state.pairs[pair]["cleared"], out)
        return
    flush_bulk(state, k, out)
    if op == WRITE_ONLY and _is_clear(size):
        back = pair_at(state.pairs, i64(lane["dst"]), i64(lane["src"]), ts)
        state.pairs[back]["cleared"] = 1
        _emit(state, k, lane["ts"], ts, lane["frame"], size, i64(CLEAR_TO_SEND), i64(FRAMING_NCCL_ROCE), out)
    elif op in (WRITE_ONLY, WRITE_LAST):
        lane["bulk"] = 1
        lane["bulk_ts"] = lane["ts"]
        lane["bulk_end"] = ts
        lane["bulk_frame"] = lane["frame"]
        lane["bulk_bytes"] = size
    else:
        _emit(state, k, lane["ts"], ts, lane["frame"], size, i64(DATA), i64(FRAMING_RDMA), out)


@inner
def _is_clear(size: int) -> bool:
    """Tell whether a WRITE of this size can be one to MAX_RECEIVES entries of a clear to send."""
    if size <= 0:
        return False
    return (size % 64 == 0 and size <= 64 * MAX_RECEIVES) or (size % 48 == 0 and size <= 48 * MAX_RECEIVES)


@inner
def cut(state: Lanes, k: int, out: Made) -> None:
    """The message in progress will not end in sight."""
    lane = state.lanes[k]
    if lane["phase"] == INSIDE:
        lane["phase"] = LOST
        pair = pair_at(state.pairs, i64(lane["src"]), i64(lane["dst"]), i64(lane["last_ns"]))
        nccl = lane["space"] == 0 and state.pairs[pair]["cleared"] == 1
        framing = i64(FRAMING_NCCL_ROCE if nccl else FRAMING_RDMA)
        _emit(state, k, lane["ts"], i64(0), lane["frame"], i64(lane["bytes"]), i64(DATA), framing, out)


@inner
def take(state: Lanes, k: int, p: Row, out: Made) -> None:
    """Take a packet that is new in its lane."""
    lane = state.lanes[k]
    bit = i64(1) << (i64(p["opcode"]) & 0x1F)
    if not bit & MOVES:
        return
    size = i64(p["payload_bytes"])
    # The rest of a READ that was asked for again begins with a First in mid-message.
    again = lane["space"] == 1 and lane["phase"] == INSIDE
    if bit & STARTS and not again:
        cut(state, k, out)
        lane["phase"] = INSIDE
        lane["holed"] = 0
        lane["ts"] = p["ts_ns"]
        lane["frame"] = p["frame"]
        lane["bytes"] = 0
    if lane["phase"] == LOST:
        return
    lane["bytes"] += size
    lane["mtu"] = max(lane["mtu"], size)
    if bit & ENDS:
        lane["phase"] = LOST
        _ended(state, k, p, out)
