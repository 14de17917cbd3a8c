"""The request and stream state machine: rows of HTTP, TLS records and closes -> requests with times.

One open request per lane (request_lanes.py; pipelined requests end the one before). Each connection is
read at one tap only, the vantage of its server end, so that a connection seen twice counts once; the
two legs of a gateway are two connections and count as two. Rows are handled in arrays: a request
costs a row of the pool, a chunk costs nothing that lasts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skewscope.core.directory import Directory
from skewscope.core.features import Slice
from skewscope.core.tables import Array, Table
from skewscope.features.graph import GraphRows, grow
from skewscope.features.request_lanes import (
    CLOSE,
    END,
    HEAD,
    PIECE,
    REQUEST,
    RESYNC,
    STREAM_BITS,
    UPGRADED,
    Events,
    Lanes,
    lane_heads,
    whole,
)

MAX_OPEN = 1 << 16
"""Requests tracked at once; more are counted in `dropped` and not followed."""

MAX_SILENT_NS = 600_000_000_000
"""A request without a byte for ten minutes is forgotten: its connection's end was not captured."""

FINISHED_BYTES = 96
"""A TLS 1.3 client's first protected record is its Finished (53 or 69 bytes with SHA-256 or SHA-384,
RFC 8446 section 4.4.4), not a request; a request head does not fit into as little."""

POOL_FIELDS = {
    "lane": (np.int64, 0), "flow": (np.int64, 0), "endpoint": (np.int64, -1), "client": (np.int64, 0),
    "client_port": (np.int64, 0),
    "request_ns": (np.int64, 0), "complete_ns": (np.int64, 0), "head_ns": (np.int64, 0),
    "first_ns": (np.int64, 0), "last_ns": (np.int64, 0), "end_ns": (np.int64, 0), "seen_ns": (np.int64, 0),
    "chunks": (np.int64, 0), "events": (np.int64, 0), "egress_bytes": (np.int64, 0),
    "request_bytes": (np.int64, 0), "expected_bytes": (np.int64, 0), "status": (np.int64, 0),
    "method": (np.int64, 0), "streaming": (np.int64, 0), "sized": (np.bool_, False),
    "aborted": (np.bool_, False),
    "tap": (np.int64, -1), "frame": (np.int64, -1), "open": (np.bool_, False),
    "unsure": (np.bool_, False), "told_bytes": (np.int64, 0), "steps_at": (np.float64, 0.0),
    "alone": (np.bool_, False), "round_tag": (np.int64, -1),
}  # fmt: skip


@dataclass
class Activity:
    """What happened to requests in one slice. `rows` index the pool, which stays valid until the next one."""

    arrived: Array
    """int64 (n,): requests of which the head came in."""
    first: Array
    """int64 (n,): requests whose response began."""
    ended: Array
    """int64 (n,): requests that finished, in order of their end."""
    chunk_row: Array
    """int64 (chunks,): pool row of every response piece, pieces of one segment joined; time order."""
    chunk_ns: Array
    """int64 (chunks,): its time."""
    chunk_gap_ns: Array
    """int64 (chunks,): time since the stream's previous piece, 0 for its first."""
    chunk_tap: Array
    """int64 (chunks, 2): tap and frame of the piece."""


def _none() -> Array:
    return np.zeros(0, dtype=np.int64)


class RequestLog:
    """Follows every request of every HTTP or TLS connection, at one vantage each."""

    def __init__(self) -> None:
        self.pool: dict[str, Array] = {
            n: np.full(256, fill, dtype=kind) for n, (kind, fill) in POOL_FIELDS.items()
        }
        self.endpoints: list[tuple[int, int]] = []
        """(address id, port) of every server end that answered or was asked."""
        self.dropped = 0
        self.prompt_ns = np.zeros(0)
        """float64 (endpoints,): a head of unknown length that comes later than this after its request
        comes with the first token; set by who knows the endpoint's pace, inf while unknown."""
        self._free = list(range(255, -1, -1))
        self._retired: Array = _none()
        self._lanes = Lanes()
        self._server = np.zeros(0, dtype=np.int8)
        self._endpoint = np.zeros(0, dtype=np.int32)
        self._client = np.zeros(0, dtype=np.int32)
        self._client_port = np.zeros(0, dtype=np.int32)
        self._turn = np.zeros(0, dtype=np.int8)
        self._endpoint_ids: dict[tuple[int, int], int] = {}

    def absorb(self, slice_: Slice, graph: GraphRows) -> Activity:
        """Take one slice and return what happened in it."""
        self._release()
        self._reserve(len(slice_.directory.flows))
        events = self._gather(slice_, graph)
        activity = Activity(_none(), _none(), _none(), _none(), _none(), _none(), np.zeros((0, 2), np.int64))
        if len(events):
            activity = self._advance(events)
        stale = np.flatnonzero(self.pool["open"] & (self.pool["seen_ns"] < slice_.end_ns - MAX_SILENT_NS))
        if len(stale):
            self.pool["open"][stale] = False
            self._lanes.remember(self.pool["lane"][stale], np.full(len(stale), -1))
            self._free.extend(int(r) for r in stale)
        return activity

    def _release(self) -> None:
        self._free.extend(int(r) for r in self._retired[::-1])
        self._retired = _none()

    def _reserve(self, flows: int) -> None:
        self._lanes.reserve(flows)
        self._server = grow(self._server, flows, -1)
        self._endpoint = grow(self._endpoint, flows, -1)
        self._client = grow(self._client, flows, 0)
        self._client_port = grow(self._client_port, flows, 0)
        self._turn = grow(self._turn, flows, 0)

    def _gather(self, slice_: Slice, graph: GraphRows) -> Events:
        """Join HTTP rows, TLS records and closes of known connections, at the vantage of the server."""
        http, records, packets = (slice_.tables[n] for n in ("http", "records", "packets"))
        self._learn(np.unique(http["flow"]).astype(np.int64), slice_.directory, graph)
        secret = records.take(records["kind"] == 23)
        self._learn(np.unique(secret["flow"]).astype(np.int64), slice_.directory, graph)
        closes = packets.take(((packets["flags"] & 5) > 0) & (self._server[packets["flow"]] >= 0))
        parts = [
            self._http_part(http, packets, graph),
            self._record_part(secret, graph),
            self._close_part(closes, graph),
        ]
        events = Events({n: np.concatenate([p[n] for p in parts]) for n in parts[0]})
        events = self._lanes.repeat_closes(events)
        return events.take(np.lexsort((events["kind"] == CLOSE, events["ts_ns"], events["lane"])))

    def _learn(self, flows: Array, directory: Directory, graph: GraphRows) -> None:
        for f in flows[self._server[flows] < 0]:
            flow = directory.flows[f]
            # Where nothing was read that tells (TLS), the lower port serves: clients use ephemeral ones.
            end = int(graph.server[f]) if graph.server[f] >= 0 else int(flow.b_port < flow.a_port)
            self._server[f] = end
            sides = ((flow.a, flow.a_port), (flow.b, flow.b_port))
            key = sides[end]
            if key not in self._endpoint_ids:
                self._endpoint_ids[key] = len(self.endpoints)
                self.endpoints.append(key)
            self._endpoint[f] = self._endpoint_ids[key]
            self._client[f], self._client_port[f] = sides[1 - end]

    def _seen(self, table: Table, graph: GraphRows) -> Table:
        flow = table["flow"].astype(np.int64)
        server = self._server[flow].astype(np.int64)
        return table.take((server >= 0) & (graph.vantage[flow, np.maximum(server, 0)] == table["tap"]))

    def _part(self, table: Table, kind: Array, sized: bool) -> dict[str, Array]:
        flow = table["flow"].astype(np.int64)
        zero = np.zeros(len(table), dtype=np.int64)
        extra = {n: table[n].astype(np.int64) if n in table.columns else zero for n in
                 ("nbytes", "events", "status", "method", "streaming")}  # fmt: skip
        return {
            "flow": flow, "lane": flow << STREAM_BITS, "ts_ns": table["ts_ns"], "kind": kind.astype(np.int64),
            "from_server": table["way"] == self._server[flow], "tap": table["tap"].astype(np.int64),
            "frame": table["frame"].astype(np.int64), "sized": np.full(len(table), sized),
            "cut": np.zeros(len(table), dtype=np.bool_), **extra,
        }  # fmt: skip

    def _http_part(self, http: Table, packets: Table, graph: GraphRows) -> dict[str, Array]:
        table = self._seen(http, graph)
        # Pushed streams have even ids: nobody asked for them.
        table = table.take((table["stream"] == 0) | (table["stream"] % 2 == 1))
        part = self._part(table, table["kind"], False)
        self._lanes.enter(part, table["stream"].astype(np.int64))
        heads = np.flatnonzero(table["kind"] == HEAD)
        if len(heads):
            short = packets["captured_bytes"] < packets["payload_bytes"]
            cut = (packets["tap"][short].astype(np.int64) << 48) + packets["frame"][short].astype(np.int64)
            part["cut"][heads] = np.isin((part["tap"][heads] << 48) + part["frame"][heads], cut)
        return part

    def _record_part(self, records: Table, graph: GraphRows) -> dict[str, Array]:
        """Read turns of direction as requests and responses: sizes and times are all TLS shows."""
        table = self._seen(records, graph)
        table = table.take(np.lexsort((table["ts_ns"], table["flow"])))
        table = self._without_finished(table)
        flow = table["flow"].astype(np.int64)
        server = (table["way"] == self._server[flow]).astype(np.int8) + 1  # 1 client, 2 server
        before = np.where(lane_heads(flow), self._turn[flow], np.concatenate((server[:1], server[:-1])))
        kind = np.where((server == 1) & (before != 1), REQUEST, PIECE)
        tail = np.ones(len(flow), dtype=np.bool_)
        tail[:-1] = flow[1:] != flow[:-1]
        self._turn[flow[tail]] = server[tail]
        part = self._part(table, kind, True)
        part["method"] = np.where(kind == REQUEST, 2, 0)
        return part

    def _without_finished(self, table: Table) -> Table:
        """Drop the record with which a client ends its handshake, the first one on its connection."""
        flow = table["flow"].astype(np.int64)
        first = lane_heads(flow) & (self._turn[flow] == 0)
        finished = first & (table["way"] != self._server[flow]) & (table["nbytes"] <= FINISHED_BYTES)
        self._turn[flow[first]] = 3
        return table.take(~finished)

    def _close_part(self, packets: Table, graph: GraphRows) -> dict[str, Array]:
        table = self._seen(packets, graph)
        return self._part(table, np.full(len(table), CLOSE), False)

    def _advance(self, e: Events) -> Activity:
        """Cut the events into requests, give each its pool row, and fill that in."""
        lane, kind, server = e["lane"], e["kind"], e["from_server"]
        head = lane_heads(lane)
        done = np.zeros(len(e), dtype=np.bool_)
        done[1:] = (kind[:-1] == END) & server[:-1] & ~head[1:]
        first = np.flatnonzero(head)
        current = self._lanes.rows_of(lane[first])
        lost = np.zeros(len(e), dtype=np.bool_)
        lost[first] = current < 0
        fresh = (kind == REQUEST) | done | lost
        start = fresh | head
        at = np.flatnonzero(start)
        # What a client sends on a stream that was answered, or was never seen to begin, is no request.
        opens = np.isin(kind, (REQUEST, HEAD, PIECE)) & (whole(lane) | server | (kind == REQUEST))
        useful = np.logical_or.reduceat(opens, at) | ~fresh[at]
        was = current[np.cumsum(head)[at] - 1]
        row = np.where(fresh[at], -1, was)
        row = self._allocate(row, useful & fresh[at], lane[at])
        last = np.ones(len(at), dtype=np.bool_)
        last[:-1] = head[at[1:]]
        rows = row[np.cumsum(start) - 1]
        kept = rows >= 0
        activity = self._fill(e.take(kept), rows[kept])
        # A new request on a lane ends whatever was open on it.
        replaced = was[(was >= 0) & fresh[at] & head[at]]
        followed = row[(row >= 0) & ~last]
        return self._settle(activity, np.concatenate((replaced, followed)), lane[at], row, last)

    def _allocate(self, row: Array, wanted: Array, lane: Array) -> Array:
        count = int(wanted.sum())
        size = len(self.pool["flow"])
        while len(self._free) < count and size < MAX_OPEN:
            self.pool = {n: grow(v, 2 * size, POOL_FIELDS[n][1]) for n, v in self.pool.items()}
            self._free.extend(range(2 * size - 1, size - 1, -1))
            size *= 2
        taken = [self._free.pop() for _ in range(min(count, len(self._free)))]
        self.dropped += count - len(taken)
        into = np.flatnonzero(wanted)[: len(taken)]
        new = np.array(taken, dtype=np.int64)
        for name, (_, fill) in POOL_FIELDS.items():
            self.pool[name][new] = fill
        row[into] = new
        flows = lane[into] >> STREAM_BITS
        self.pool["lane"][new] = lane[into]
        self.pool["flow"][new], self.pool["endpoint"][new] = flows, self._endpoint[flows]
        self.pool["client"][new], self.pool["client_port"][new] = (
            self._client[flows],
            self._client_port[flows],
        )
        self.pool["open"][new] = True
        return row

    def _fill(self, e: Events, rows: Array) -> Activity:
        p, ts, kind, server = self.pool, e["ts_ns"], e["kind"], e["from_server"]
        asks = ~server & (kind != CLOSE) & (kind != RESYNC)
        replies = server & (kind == PIECE)
        interim = (e["status"] >= 100) & (e["status"] < 200) & (e["status"] != UPGRADED)
        heads = server & (kind == HEAD) & ~interim
        unset = p["tap"][rows] < 0
        for name in ("tap", "frame"):  # reversed: the first row of each request is written last
            p[name][rows[unset][::-1]] = e[name][unset][::-1]
        np.maximum.at(p["seen_ns"], rows, ts)
        begins = asks & (kind == REQUEST)
        p["request_ns"][rows[begins]] = ts[begins]
        early = asks & (p["first_ns"][rows] == 0)
        np.maximum.at(p["complete_ns"], rows[early], ts[early])
        np.add.at(p["request_bytes"], rows[asks & (kind == PIECE)], e["nbytes"][asks & (kind == PIECE)])
        np.maximum.at(p["expected_bytes"], rows[begins], e["nbytes"][begins])
        replies |= self._with_token(e, rows, heads)
        _first_of(p["head_ns"], rows[heads], ts[heads])
        for name in ("status", "streaming"):
            np.maximum.at(p[name], rows[heads], e[name][heads])
        failed = server & (kind == END) & (e["status"] > 0)  # gRPC answers 200 first and its status last
        np.maximum.at(p["status"], rows[failed], e["status"][failed])
        np.maximum.at(p["method"], rows[begins], e["method"][begins])
        np.logical_or.at(p["sized"], rows, e["sized"])
        np.add.at(p["egress_bytes"], rows[replies], e["nbytes"][replies])
        np.add.at(p["events"], rows[replies], e["events"][replies])
        began = _unique(rows[replies & (p["first_ns"][rows] == 0)])
        chunk = self._chunks(e, rows, replies)
        ends = (server & (kind == END)) | (kind == CLOSE)
        _first_of(p["end_ns"], rows[ends], ts[ends])
        cut = ends & (kind == CLOSE) & (p["end_ns"][rows] == ts) & (p["method"][rows] > 0)
        np.logical_or.at(p["aborted"], rows[cut], ~server[cut])
        return Activity(_unique(rows[begins]), began, _unique(rows[ends]), *chunk)

    def _with_token(self, e: Events, rows: Array, heads: Array) -> Array:
        """Return the heads that hide a first token, bool (events,).

        Where the snap length cuts a head off, what follows it in its segment is lost. A server that
        accepts sends its head at once; one that waits for the first token sends both together.
        """
        self.prompt_ns = grow(self.prompt_ns, len(self.endpoints), np.inf)
        asked = np.maximum(self.pool["complete_ns"][rows], self.pool["request_ns"][rows])
        patience = self.prompt_ns[self.pool["endpoint"][rows]]
        late = e["ts_ns"] - asked > patience
        self.pool["unsure"][rows[heads & e["cut"] & np.isinf(patience)]] = True
        found: Array = heads & e["cut"] & (asked > 0) & late & (e["streaming"] != 2)
        return found

    def _chunks(self, e: Events, rows: Array, replies: Array) -> tuple[Array, Array, Array, Array]:
        """Return row, time, gap and frame of each response piece; fills first_ns, last_ns, chunks."""
        row, ts = rows[replies], e["ts_ns"][replies]
        where = np.stack((e["tap"][replies], e["frame"][replies]), axis=1)
        # Rows are sorted by lane and time, so a stream's pieces are consecutive.
        head = lane_heads(row)
        before = np.concatenate((ts[:1], ts[:-1]))
        before = np.where(head, self.pool["last_ns"][row], before)
        alone = ts != before
        row, ts, before, where = row[alone], ts[alone], before[alone], where[alone]
        _first_of(self.pool["first_ns"], row, ts)
        np.maximum.at(self.pool["last_ns"], row, ts)
        np.add.at(self.pool["chunks"], row, 1)
        gap = np.where(before > 0, ts - before, 0)
        order = np.argsort(ts, kind="stable")
        return row[order], ts[order], gap[order], where[order]

    def _settle(self, activity: Activity, implied: Array, lane: Array, row: Array, last: Array) -> Activity:
        """Close what ended, remember what goes on, and retire rows after this slice."""
        p = self.pool
        late = implied[p["end_ns"][implied] == 0]
        p["end_ns"][late] = p["seen_ns"][late]
        ended = _unique(np.concatenate((activity.ended, implied)))
        p["open"][ended] = False
        goes_on = row[last]
        lives = (goes_on >= 0) & p["open"][np.maximum(goes_on, 0)]
        self._lanes.remember(lane[last], np.where(lives, goes_on, -1))
        self._retired = ended
        activity.ended = ended[np.argsort(p["end_ns"][ended], kind="stable")]
        return activity


def _unique(rows: Array) -> Array:
    return np.unique(rows).astype(np.int64)


def _first_of(target: Array, rows: Array, ts: Array) -> None:
    """Write into target[rows] the earliest time of each row where none is written yet."""
    new = target[rows] == 0
    np_rows, np_ts = rows[new], ts[new]
    order = np.argsort(-np_ts, kind="stable")
    target[np_rows[order]] = np_ts[order]
