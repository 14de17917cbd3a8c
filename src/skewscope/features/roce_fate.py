"""What became of RoCE packets: copies lost between two hosts, and receivers without a buffer.

A reliable connection goes back to the first missing packet and sends everything from there again (IBTA volume
1, 9.7.5). A step back at the sender's tap is one loss, unless the receiver's tap shows that it had taken that
packet (the acknowledgement was lost) or the receiver had said that it has no buffer (RNR NAK).
"""

from __future__ import annotations

import numpy as np

from skewscope.core.jit import njit
from skewscope.core.tables import Array, Table
from skewscope.features.graph import GraphRows
from skewscope.features.tcp_fate import E_LOST

E_NOT_READY = np.int64(6)
"""Kind of event behind those of tcp_fate: a receiver without a buffer."""

REQUESTS = 0xD81FFF
"""Bits of the opcodes (lower 5 bits) whose packet sequence numbers their sender assigns."""
ACKNOWLEDGE = 0x11
NOT_READY = 1
"""Upper three bits of the syndrome of an RNR NAK."""

FAR = 1 << 16
"""Packets: a step back further than any window is another connection on the same number."""

SKIPPED_NS = 50_000_000
"""A gap at the receiver's tap that nobody went back to for so long is the capture's."""

MAX_LANES = 1 << 16

# Columns of a lane's state: next number at the sender's tap and at the receiver's (-1 = none); since when a
# gap is open (ns).
NEXT, TAKEN, GAP_NS, COLUMNS = range(4)


@njit
def follow(
    psn: Array, ts: Array, lane: Array, pair: Array, at: Array, refuses: Array, state: Array, refused: Array,
    fate: Array,
) -> None:  # fmt: skip
    """Write to fate int64 (n,): 1 = a copy of this packet was lost, 2 = taken by the receiver, 0 = neither.

    psn, ts, lane, pair int64 (n,) in order of time; at int64 (n,): 1 seen at the sender's tap, 2 at the
    receiver's; refuses bool (n,): an RNR NAK, whose pair is that of the data; state int64 (lanes,
    COLUMNS); refused int64 (pairs,): number that an RNR NAK asked for, -1 = none.
    """
    for i in range(len(psn)):
        fate[i] = 0
        if refuses[i]:
            refused[pair[i]] = psn[i]
            continue
        row = state[lane[i]]
        if at[i] == 2:
            ahead = ((psn[i] - row[TAKEN] + 0x800000) & 0xFFFFFF) - 0x800000
            if row[TAKEN] < 0 or ahead == 0 or ahead < -FAR or ahead > FAR:
                fate[i] = 2
            elif ahead > 0:
                row[GAP_NS] = row[GAP_NS] if row[GAP_NS] > 0 else ts[i]
                if ts[i] - row[GAP_NS] < SKIPPED_NS:
                    continue
            else:
                continue
            row[TAKEN] = (psn[i] + 1) & 0xFFFFFF
            row[GAP_NS] = 0
            continue
        back = ((row[NEXT] - psn[i] + 0x800000) & 0xFFFFFF) - 0x800000
        if row[NEXT] >= 0 and 0 < back < FAR:
            taken = ((row[TAKEN] - psn[i] + 0x800000) & 0xFFFFFF) - 0x800000
            if refused[pair[i]] == psn[i]:
                refused[pair[i]] = -1
            elif row[TAKEN] < 0 or taken <= 0:
                fate[i] = 1
        row[NEXT] = (psn[i] + 1) & 0xFFFFFF


class RoceFate:
    """Follows the packet sequence numbers of RoCE connections."""

    def __init__(self) -> None:
        self._lane: dict[int, int] = {}
        self._pair: dict[int, int] = {}
        self._state = np.full((0, COLUMNS), -1, dtype=np.int64)
        self._refused = np.full(0, -1, dtype=np.int64)

    def update(self, roce: Table | None, graph: GraphRows) -> tuple[Array, Array, Array]:
        """Return (lanes of requests sent int64 (n,), events int64 (n, 6), crossed copies int64 (n, 3)).

        roce: in order of time, None where no source has it. Lanes are 2 * flow + way.
        """
        empty = np.zeros(0, dtype=np.int64), np.zeros((0, 6), dtype=np.int64), np.zeros((0, 3), np.int64)
        if roce is None or not len(roce):
            return empty
        op = roce["opcode"].astype(np.int64)
        refuses = (op == ACKNOWLEDGE) & (roce["syndrome"] >> 5 == NOT_READY)
        asked = (op < 0x20) & ((np.int64(1) << (op & 0x1F)) & REQUESTS > 0)
        kept = (asked | refuses) & (roce["fault"] == 0) & (roce["flow"] > 0)
        if not kept.any():
            return empty
        p, refuses = roce.take(kept), refuses[kept]
        flow, way, tap = p["flow"].astype(np.int64), p["way"].astype(np.int64), p["tap"]
        sent, got = graph.vantage[flow, way] == tap, graph.vantage[flow, 1 - way] == tap
        src, dst = p["src"].astype(np.int64), p["dst"].astype(np.int64)
        pairs, self._refused = _rows(
            self._pair, np.where(refuses, dst << 32 | src, src << 32 | dst), self._refused
        )
        lanes = np.where(refuses, 0, src << 44 | dst << 24 | p["qp"].astype(np.int64))
        rows, self._state = _rows(self._lane, lanes, self._state)
        at = np.where(sent, 1, np.where(got & ~refuses, 2, 0))
        use = np.flatnonzero((at > 0) & (rows >= 0) & (pairs >= 0))
        fate = np.zeros(len(use), dtype=np.int64)
        ts, psn = p["ts_ns"].astype(np.int64), p["psn"].astype(np.int64)
        follow(
            psn[use], ts[use], rows[use], pairs[use], at[use], refuses[use], self._state, self._refused, fate
        )
        lane = 2 * flow + way
        size = p["payload_bytes"].astype(np.int64)
        place = p["frame"].astype(np.int64) | tap.astype(np.int64) << 48
        lost, no = use[fate == 1], use[refuses[use]]
        events = [
            np.stack([np.full(len(k), kind), lane[k] ^ turn, ts[k], size[k], place[k], 0 * k], axis=1)
            for kind, k, turn in ((E_LOST, lost, 0), (E_NOT_READY, no, 1))
        ]
        took = use[fate == 2]
        crossed = np.stack([lane[took], ts[took], size[took]], axis=1)
        return lane[use[(at[use] == 1) & ~refuses[use]]], np.concatenate(events), crossed


def _rows(known: dict[int, int], keys: Array, state: Array) -> tuple[Array, Array]:
    """Return the row of each key, int64 (n,), -1 beyond MAX_LANES; and the state, longer if need be."""
    unique, back = np.unique(keys, return_inverse=True)
    found = np.empty(len(unique), dtype=np.int64)
    for i, key in enumerate(unique.tolist()):
        if key not in known and len(known) < MAX_LANES:
            known[key] = len(known)
        found[i] = known.get(key, -1)
    short = len(known) - len(state)
    if short > 0:
        more = np.full((max(short, len(state)), *state.shape[1:]), -1, dtype=np.int64)
        state = np.concatenate([state, more])
    return found[back], state
