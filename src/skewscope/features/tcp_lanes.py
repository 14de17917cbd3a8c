"""Where the TCP state of flows is kept: a bounded set of places, the flows longest silent make room."""

from __future__ import annotations

import numpy as np

from skewscope.core.jit import njit
from skewscope.core.tables import Array, Table
from skewscope.features import tcp_kernel as k
from skewscope.features.graph import grow

MAX_PLACES = 1 << 18
"""Flows followed at a time (120 MiB); of more in one slice the first are."""

MAX_RINGS = 1 << 14
"""Lanes whose copies are remembered (64 MiB); further lanes are counted without round trips."""

MADE_AT_ONCE = 8
"""When no place is free, one in so many is freed."""

FIRST_PLACES = 1 << 10

SCANNED = (
    "ts_ns", "tap", "frame", "flow", "way", "payload_bytes", "seq", "ack", "flags", "window",
    "sack_lo", "sack_hi", "ip_id", "ecn",
)  # fmt: skip

COLUMNS = len(SCANNED) + 1


class Lanes:
    """State arrays of the kernel; a flow's lanes are rows 2 * place + way of `state` and `acc`."""

    def __init__(self) -> None:
        self.state = np.zeros((0, k.L_COLUMNS), dtype=np.int64)
        self.acc = np.zeros((0, k.A_COLUMNS), dtype=np.int64)
        self.ring = np.zeros((256, k.RING, 8), dtype=np.int64)
        self.place = np.full(1, -1, dtype=np.int32)
        """int32 (flows,): -1 = not followed."""
        self._flow = np.zeros(0, dtype=np.int64)
        self._seen = np.zeros((0, 2), dtype=np.int64)
        self._free = np.zeros(0, dtype=np.int64)
        self._rings = np.arange(MAX_RINGS - 1, -1, -1)
        self._left = np.array([MAX_RINGS], dtype=np.int64)
        self._tick = 0

    def gather(self, packets: Table, flows: int, vantage: Array) -> tuple[Array, Array]:
        """Return the TCP rows for the kernel, int64 (n, COLUMNS), and the lanes of the slice.

        flows: how many there are in the run. A lane (2 * flow + way) is of the slice where its sender's
        tap showed a packet.
        """
        self._tick += 1
        self.place = grow(self.place, flows, -1)
        new = packets["flow"][self.place[packets["flow"]] < 0]
        if len(new):
            self._admit(np.unique(new[new > 0]).astype(np.int64))
        n = len(packets)
        cols, lanes = np.empty((n, COLUMNS), dtype=np.int64), np.empty(n, dtype=np.int64)
        columns = tuple(packets[name] for name in SCANNED)
        rows, marked = gather(
            columns, packets["proto"], packets["fault"], vantage, self.place, self.state, self.acc,
            self._seen, self._tick, self._rings, self._left, cols, lanes,
        )  # fmt: skip
        self.ring = grow(self.ring, MAX_RINGS - int(self._left[0]), 0)
        return cols[:rows], lanes[:marked]

    def rows(self, lanes: Array) -> Array:
        """Return the row of each lane, -1 where its flow is not followed any more."""
        place = self.place[lanes // 2].astype(np.int64)
        return np.where(place < 0, -1, 2 * place + lanes % 2)

    def _admit(self, flows: Array) -> None:
        if len(flows) > len(self._free):
            self._make_room(len(flows))
        flows = flows[: len(self._free)]
        places = self._free[len(self._free) - len(flows) :][::-1]
        self._free = self._free[: len(self._free) - len(flows)]
        self.place[flows], self._flow[places] = places, flows
        lanes = np.concatenate([2 * places, 2 * places + 1])
        self.state[lanes] = 0
        self.state[lanes[:, None], [k.L_NEXT, k.L_UNA, k.L_SLOT, k.L_RNEXT]] = -1
        self.acc[lanes] = 0
        self._seen[places] = self._tick - 1

    def _make_room(self, wanted: int) -> None:
        have = len(self._flow)
        size = min(max(2 * have, have + wanted, FIRST_PLACES), MAX_PLACES)
        if size > have:
            self.state, self.acc = _longer(self.state, 2 * size), _longer(self.acc, 2 * size)
            self._flow, self._seen = _longer(self._flow, size), _longer(self._seen, size)
            self._free = np.concatenate([np.arange(size - 1, have - 1, -1), self._free])
        short = wanted - len(self._free)
        if short <= 0:
            return
        count = min(max(short, have // MADE_AT_ONCE), have)
        used = np.setdiff1d(np.arange(have), self._free)
        silent = self._seen[used].max(axis=1)
        gone = used[np.argsort(silent, kind="stable")[:count]]
        self.place[self._flow[gone]] = -1
        rings = self.state[np.concatenate([2 * gone, 2 * gone + 1]), k.L_SLOT]
        rings = rings[rings >= 0]
        left = int(self._left[0])
        self._rings[left : left + len(rings)] = rings
        self.ring[rings] = 0
        self._left[0] = left + len(rings)
        self._free = np.concatenate([self._free, gone[::-1]])


def _longer(array: Array, size: int) -> Array:
    longer = np.zeros((size, *array.shape[1:]), dtype=array.dtype)
    longer[: len(array)] = array
    return longer


@njit
def gather(
    packets: tuple[Array, ...],
    proto: Array,
    fault: Array,
    vantage: Array,
    place: Array,
    state: Array,
    acc: Array,
    seen: Array,
    tick: int,
    rings: Array,
    left: Array,
    cols: Array,
    touched: Array,
) -> tuple[int, int]:
    """Sort out the packets of a slice; return how many rows of `cols` and of `touched` were filled.

    packets: the columns of SCANNED, each of shape (n,). TCP rows without a fault go to cols int64
    (n, COLUMNS); the lanes that the sender's tap saw go to touched int64 (n,), each once; UDP is counted
    in `acc`. seen int64 (places, 2): tick of each lane's last packet. A lane with data gets one of the
    `rings` while there are any: left int64 (1,) of them.
    """  # fmt: skip
    ts, tap, frame, flows, ways, payload, seq, ack, flags, window, sack_lo, sack_hi, ip_id, ecn = packets
    rows = marked = 0
    for i in range(len(ts)):
        flow, way = np.int64(flows[i]), np.int64(ways[i])
        at = np.int64(place[flow])
        if flow == 0 or at < 0:
            continue
        lane = 2 * at + way
        if vantage[flow, way] == tap[i]:
            if seen[at, way] != tick:
                seen[at, way] = tick
                touched[marked] = 2 * flow + way
                marked += 1
            if proto[i] == 17:
                acc[lane, k.A_PACKETS] += 1
                acc[lane, k.A_BYTES] += payload[i]
        if proto[i] != 6 or fault[i] != 0:
            continue
        if payload[i] > 0 and state[lane, k.L_SLOT] < 0 and left[0] > 0:
            left[0] -= 1
            state[lane, k.L_SLOT] = rings[left[0]]
        row = cols[rows]
        rows += 1
        row[0], row[1], row[2], row[3], row[4] = ts[i], tap[i], frame[i], flow, way
        row[5], row[6], row[7], row[8], row[9] = payload[i], seq[i], ack[i], flags[i], window[i]
        row[10], row[11], row[12], row[13] = sack_lo[i], sack_hi[i], ip_id[i], ecn[i]
        row[14] = at
    return rows, marked
