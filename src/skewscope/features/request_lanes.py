"""Lanes: where one request at a time is open. A connection of HTTP/1 or TLS, or a stream of HTTP/2.

A lane is a flow id and, in its low 32 bits, a stream id: 0 for a whole connection.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from skewscope.core.tables import Array
from skewscope.features.graph import grow

STREAM_BITS = 32
STREAM_MASK = (1 << STREAM_BITS) - 1

REQUEST, HEAD, PIECE, END, RESYNC, CLOSE = 1, 2, 3, 4, 5, 9
"""Event kinds: those of the HTTP table, and a FIN or RST."""

UPGRADED = 101
"""The status with which a connection goes over to HTTP/2; the answer follows on stream 1 (RFC 7540, 3.2)."""


@dataclass
class Events:
    """Rows of all sources under one set of columns, sorted by lane and time."""

    columns: dict[str, Array] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    def __len__(self) -> int:
        return len(self.columns["flow"])

    def take(self, rows: Array) -> Events:
        """Return some of them."""
        return Events({n: v[rows] for n, v in self.columns.items()})


class Lanes:
    """The open request of each lane. Streams are kept only while one is open."""

    def __init__(self) -> None:
        self._flows = np.zeros(0, dtype=np.int64)
        self._streams: dict[int, int] = {}
        self._upgraded = np.zeros(0, dtype=np.bool_)

    def reserve(self, flows: int) -> None:
        """Make room for flow ids below `flows`."""
        self._flows = grow(self._flows, flows, -1)
        self._upgraded = grow(self._upgraded, flows, 0)

    def rows_of(self, lanes: Array) -> Array:
        """Return the open request of each lane, -1 = none: int64 (n,)."""
        rows: Array = self._flows[lanes >> STREAM_BITS].copy()
        for i in np.flatnonzero(~whole(lanes)):
            rows[i] = self._streams.get(int(lanes[i]), -1)
        return rows

    def remember(self, lanes: Array, rows: Array) -> None:
        """Set the open request of each lane, -1 = none."""
        flows = whole(lanes)
        self._flows[lanes[flows] >> STREAM_BITS] = rows[flows]
        for lane, row in zip(lanes[~flows].tolist(), rows[~flows].tolist(), strict=True):
            if row >= 0:
                self._streams[lane] = row
            else:
                self._streams.pop(lane, None)

    def enter(self, part: dict[str, Array], stream: Array) -> None:
        """Give events of HTTP/2 streams their lanes; a stream that its client resets is closed by it.

        stream: int64 (n,), the stream ids. After an upgrade the answer to the request that asked for it
        comes on stream 1 and belongs to the lane of the connection.
        """
        flow = part["flow"]
        self._upgraded[flow[(stream == 0) & (part["status"] == UPGRADED)]] = True
        stream = np.where(self._upgraded[flow] & (stream == 1), 0, stream)
        part["lane"] = part["lane"] + stream
        gone = (part["kind"] == END) & ~part["from_server"] & (part["status"] > 0)
        part["kind"] = np.where(gone, CLOSE, part["kind"])

    def repeat_closes(self, e: Events) -> Events:
        """Return the events with the close of each connection repeated for every stream open on it."""
        streams = np.array(list(self._streams), dtype=np.int64)
        streams = np.union1d(streams, e["lane"][~whole(e["lane"])])
        if len(streams) == 0:
            return e
        at = np.flatnonzero((e["kind"] == CLOSE) & whole(e["lane"]))
        low = np.searchsorted(streams, e["flow"][at] << STREAM_BITS)
        count = np.searchsorted(streams, (e["flow"][at] + 1) << STREAM_BITS) - low
        again = e.take(np.repeat(at, count))
        step = np.arange(len(again)) - np.repeat(np.cumsum(count) - count, count)
        again.columns["lane"] = streams[np.repeat(low, count) + step]
        return Events({n: np.concatenate((v, again[n])) for n, v in e.columns.items()})


def whole(lanes: Array) -> Array:
    """Return which lanes are whole connections: bool (n,)."""
    found: Array = lanes & STREAM_MASK == 0
    return found


def lane_heads(lanes: Array) -> Array:
    """Return which rows, sorted by lane, are the first of theirs: bool (n,)."""
    head = np.ones(len(lanes), dtype=np.bool_)
    head[1:] = lanes[1:] != lanes[:-1]
    return head
