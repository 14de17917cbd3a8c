"""RoCE packets of one tap to messages, each counted once: sequence numbers, copies, gaps.

Packet sequence numbers (24 bits) tell copies from new packets. At a jump forward what follows is held
back: where the sender goes back to the gap (a loss in front of the tap, RC is go-back-N), the receiver
had dropped it all and the state is rewound; where it goes on for GAP_NS without a NAK for the gap, the
capture lost packets: the held rows stand, with a row in `holes`. A message that was under way when
the capture began has no row; one cut short has end_ns = 0. What a message is: nccl_roce.py.
"""

from __future__ import annotations

import numpy as np

from skewscope.core.schemas import HOLES, MESSAGES, ROCE
from skewscope.core.tables import Table
from skewscope.wire import nccl_roce as n
from skewscope.wire.jit import inner, njit
from skewscope.wire.layout import Row, Rows, i64
from skewscope.wire.nccl_roce import cut, flush_bulk
from skewscope.wire.roce_lanes import (
    EVICTED,
    HELD_ROWS,
    HOLE_ROWS,
    INSIDE,
    LOST,
    MESSAGE_ROWS,
    REPEATED,
    SWEEP_AT,
    SWEEP_NS,
    Lanes,
    Made,
    keep,
    lane_at,
    new_lanes,
    new_made,
    pair_at,
    release,
    rewind,
)

GAP_NS = 1_000_000
"""A gap without a NAK is the capture's after this long: a NAK follows a loss within a round trip."""

NAK_NS = 10_000_000_000
"""A gap with a NAK is awaited this long: two transport timeouts of NCCL's default, 4.3 s."""

BULK_NS = 50_000_000
"""A WRITE without immediate is a transfer of its own when none followed for this long."""

SWEEP_EVERY_NS = 100_000_000
NEW_QP_NS = 60_000_000_000
"""A sequence that jumps after this long is another connection on the same queue pair number."""

FAR = 1 << 16
"""Packets: a step back further than any window of packets under way is another connection."""

SPARE_ROWS = HELD_ROWS + 4
NAK, NAK_SEQUENCE = 0x60, 0x60


@inner
def _behind(psn: int, other: int) -> int:
    """Return psn - other on the circle of 2^24, -2^23 <= difference < 2^23."""
    return ((psn - other + 0x800000) & 0xFFFFFF) - 0x800000


@inner
def _begin(state: Lanes, k: int, p: Row, space: int) -> None:
    """A lane not known before, or another connection on its number."""
    lane = state.lanes[k]
    lane["used"] = 1
    lane["space"] = space
    lane["tap"] = p["tap"]
    lane["src"] = p["src"]
    lane["dst"] = p["dst"]
    lane["qp"] = p["qp"]
    lane["flow"] = p["flow"]
    lane["way"] = p["way"]
    lane["next"] = p["psn"]
    lane["last_ns"] = p["ts_ns"]
    lane["loose"] = 0
    lane["strays"] = 0
    lane["mtu"] = 0
    lane["phase"] = LOST
    lane["holed"] = 0
    lane["bulk"] = 0
    lane["gap"] = 0
    lane["held"] = 0


@inner
def _settle(state: Lanes, k: int, ts: int, out: Made) -> None:
    """Decide what has waited long enough in a lane."""
    lane = state.lanes[k]
    if lane["gap"] == 1 and ts - lane["gap_ns"] > GAP_NS:
        pair = state.pairs[pair_at(state.pairs, i64(lane["src"]), i64(lane["dst"]), ts)]
        awaited = pair["nak_psn"] == lane["gap_at"] and pair["nak_ns"] >= lane["gap_ns"]
        if not awaited or ts - lane["gap_ns"] > NAK_NS:
            release(state, k, ts, out)
    if lane["bulk"] == 1 and lane["gap"] == 0 and ts - lane["bulk_end"] > BULK_NS:
        flush_bulk(state, k, out)


@inner
def _drop(state: Lanes, k: int, ts: int, out: Made) -> None:
    """End a lane: what was held stands, a message in progress is cut."""
    release(state, k, ts, out)
    flush_bulk(state, k, out)
    cut(state, k, out)
    state.lanes[k]["used"] = 0


@inner
def _is_new(state: Lanes, k: int, p: Row, out: Made) -> bool:
    """Place a packet in its lane's sequence; returns False for a copy of one seen before."""
    lane = state.lanes[k]
    psn = i64(p["psn"])
    ahead = _behind(psn, i64(lane["next"]))
    if lane["gap"] == 1 and psn == lane["gap_at"]:
        rewind(lane)
        return True
    if ahead == 0:
        return True
    if ahead < 0:
        state.cells[REPEATED] += 1
        lane["strays"] = lane["strays"] + 1 if psn == lane["stray_next"] else 1
        lane["stray_next"] = (psn + 1) & 0xFFFFFF
        if ahead > -FAR and lane["strays"] < FAR:
            return False
        state.cells[REPEATED] -= 1
    elif lane["loose"] == 1:
        return True
    elif ahead < FAR:
        release(state, k, i64(p["ts_ns"]), out)
        keep(lane)
        lane["gap"] = 1
        lane["gap_at"] = lane["next"]
        lane["gap_to"] = psn
        lane["gap_ns"] = p["ts_ns"]
        lane["holed"] = 1
        return True
    _drop(state, k, i64(p["ts_ns"]), out)
    _begin(state, k, p, i64(lane["space"]))
    return True


@inner
def _packet(state: Lanes, p: Row, out: Made) -> None:
    """Take one packet of a reliable or unreliable connection."""
    op = i64(p["opcode"]) & 0x1F
    ts = i64(p["ts_ns"])
    src = i64(p["src"])
    dst = i64(p["dst"])
    if op == n.ACKNOWLEDGE:
        if p["syndrome"] & NAK == NAK_SEQUENCE and p["syndrome"] & 0x1F == 0:
            pair = state.pairs[pair_at(state.pairs, dst, src, ts)]
            pair["nak_psn"] = p["psn"]
            pair["nak_ns"] = ts
        return
    asks = op in (n.READ_REQUEST, n.COMPARE_SWAP, n.FETCH_ADD)
    if not asks and not (i64(1) << op) & n.MOVES:
        return
    space = i64(1 if n.READ_FIRST <= op <= n.READ_ONLY else 0)
    k = lane_at(state.lanes, src, dst, i64(p["qp"]), space)
    if k < 0:
        k = -1 - k
        if state.lanes[k]["used"] == 1:
            _drop(state, k, ts, out)
            state.cells[EVICTED] += 1
        _begin(state, k, p, space)
    lane = state.lanes[k]
    _settle(state, k, ts, out)
    if ts - lane["last_ns"] > NEW_QP_NS and lane["next"] != p["psn"]:
        _drop(state, k, ts, out)
        _begin(state, k, p, space)
    lane["last_ns"] = ts
    if _is_new(state, k, p, out):
        lane["strays"] = 0
        lane["next"] = (i64(p["psn"]) + 1) & 0xFFFFFF
        lane["loose"] = 1 if op == n.READ_REQUEST else 0
        n.take(state, k, p, out)


@inner
def _continues(lanes: Rows, p: Row) -> bool:
    """Take the next packet in the middle of a message, or a plain acknowledgement: most packets are such.

    Only one array is passed: a tuple of arrays costs atomic reference counts per call.
    """
    op = i64(p["opcode"]) & 0x1F
    if op == n.ACKNOWLEDGE:
        return bool(p["syndrome"] & NAK != NAK_SEQUENCE)
    if not (i64(1) << op) & n.MIDDLES:
        return False
    space = i64(1 if op >= n.READ_FIRST else 0)
    k = lane_at(lanes, i64(p["src"]), i64(p["dst"]), i64(p["qp"]), space)
    if k < 0:
        return False
    lane = lanes[k]
    size = i64(p["payload_bytes"])
    expected = lane["next"] == p["psn"] and lane["phase"] == INSIDE and lane["mtu"] >= size
    if not expected or lane["gap"] == 1 or p["ts_ns"] - lane["last_ns"] > NEW_QP_NS or lane["bulk"] == 1:
        return False
    lane["last_ns"] = p["ts_ns"]
    lane["strays"] = 0
    lane["loose"] = 0
    lane["next"] = (i64(p["psn"]) + 1) & 0xFFFFFF
    lane["bytes"] += size
    return True


@inner
def _room(state: Lanes, out: Made) -> bool:
    """Tell whether the rows of one more step fit."""
    return bool(max(state.cells[MESSAGE_ROWS], state.cells[HOLE_ROWS]) + SPARE_ROWS <= len(out.messages))


@njit
def take(state: Lanes, packets: Rows, start: int, out: Made) -> int:
    """Take packets [start, n) of a tap; returns the first one not taken because `out` might not hold it.

    packets: rows of the `roce` schema in capture order. Rows with a fault are passed over.
    """
    cells, lanes = state.cells, state.lanes
    for i in range(start, len(packets)):
        p = packets[i]
        ts = i64(p["ts_ns"])
        if ts - cells[SWEEP_NS] > SWEEP_EVERY_NS:
            while cells[SWEEP_AT] < len(state.lanes):
                if not _room(state, out):
                    return i
                if state.lanes[cells[SWEEP_AT]]["used"] == 1:
                    _settle(state, cells[SWEEP_AT], ts, out)
                cells[SWEEP_AT] += 1
            cells[SWEEP_AT] = 0
            cells[SWEEP_NS] = ts
        if not _room(state, out):
            return i
        if p["fault"] == 0 and p["opcode"] < 0x40 and not _continues(lanes, p):
            _packet(state, p, out)
    return len(packets)


@njit
def end(state: Lanes, start: int, ts: int, out: Made) -> int:
    """End the lanes from `start` on; returns the first one not ended because `out` might not hold it."""
    for k in range(start, len(state.lanes)):
        if not _room(state, out):
            return k
        if state.lanes[k]["used"] == 1:
            _drop(state, k, ts, out)
    return len(state.lanes)


class RoceMessages:
    """Assembles the messages of one tap; no I/O, no clock, bounded memory, any input.

    The rows do not depend on how the packets are split into `feed` calls.
    """

    def __init__(self, lanes: int = 4096) -> None:
        """Follow at most about `lanes` directions of queue pairs; the one longest silent makes room."""
        sets = max(1, lanes // 8)
        self._state = new_lanes(sets, sets)
        self._out = new_made(1 << 12)
        self._last_ns = 0

    def feed(self, roce: Table) -> dict[str, Table]:
        """Take a `roce` table in capture order; return the `messages` and `holes` rows that ended in it."""
        parts: dict[str, list[Table]] = {"messages": [], "holes": []}
        if len(roce):
            packets = np.zeros(len(roce), _PACKET)
            for name in _PACKET.names or ():
                packets[name] = roce[name]
            if self._last_ns == 0:
                self._state.cells[SWEEP_NS] = packets["ts_ns"][0]
            done = 0
            while done < len(packets):
                done = int(take(self._state, packets, done, self._out))
                self._drain(parts)
            self._last_ns = int(packets["ts_ns"][-1])
        return {
            "messages": Table.concat(MESSAGES, parts["messages"]),
            "holes": Table.concat(HOLES, parts["holes"]),
        }

    def finish(self) -> dict[str, Table]:
        """End all lanes; return what was pending."""
        parts: dict[str, list[Table]] = {"messages": [], "holes": []}
        done = 0 if self._last_ns else len(self._state.lanes)
        while done < len(self._state.lanes):
            done = int(end(self._state, done, self._last_ns, self._out))
            self._drain(parts)
        return {
            "messages": Table.concat(MESSAGES, parts["messages"]),
            "holes": Table.concat(HOLES, parts["holes"]),
        }

    def counters(self) -> dict[str, int]:
        """Return how often a lane had to make room, and how many packets were copies of earlier ones."""
        cells = self._state.cells
        return {"lanes_evicted": int(cells[EVICTED]), "packets_repeated": int(cells[REPEATED])}

    def _drain(self, parts: dict[str, list[Table]]) -> None:
        cells = self._state.cells
        for name, schema, rows, cell in (
            ("messages", MESSAGES, self._out.messages, MESSAGE_ROWS),
            ("holes", HOLES, self._out.holes, HOLE_ROWS),
        ):
            made = rows[: cells[cell]]
            if len(made):
                parts[name].append(Table(schema, {c: made[c].copy() for c in schema.columns}))
            cells[cell] = 0


_COLUMNS = ("ts_ns", "frame", "src", "dst", "flow", "qp", "psn", "immediate", "payload_bytes", "tap")
_PACKET = np.dtype([(c, ROCE.columns[c].dtype) for c in (*_COLUMNS, "opcode", "syndrome", "way", "fault")])
