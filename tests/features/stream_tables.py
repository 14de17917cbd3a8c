"""Hand-made sample tables for the stream features: a few connections, seen at one tap."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from skewscope.core.directory import Directory, Flow, Tap
from skewscope.core.features import Slice
from skewscope.core.schemas import HTTP, MESSAGES, PACKETS, RECORDS
from skewscope.core.tables import Array, Schema, Table
from skewscope.features.graph import GraphRows
from skewscope.features.streams import Streams

START = 1_700_000_000_000_000_000
TICK = 100_000_000
CLIENT, ENGINE, SECOND, ROUTER = 1, 2, 3, 4
REQUEST, HEAD, PIECE, END = 1, 2, 3, 4
STEP = 0.05
"""Time from piece to piece of a steady stream, s."""


def ns(seconds: float) -> int:
    """Return a time of the hand-made capture."""
    return START + round(seconds * 1e9)


@dataclass
class Wire:
    """Collects rows; `slices` cuts them as the engine would."""

    directory: Directory = field(
        default_factory=lambda: Directory(
            addresses=["-", "10.9.0.1", "10.9.0.2", "10.9.0.3", "10.9.0.4"], taps=[Tap(0, "one.pcap")]
        )
    )
    rows: dict[str, list[dict[str, int]]] = field(
        default_factory=lambda: {"http": [], "records": [], "packets": [], "messages": []}
    )
    taps: dict[int, int] = field(default_factory=dict)

    def connect(self, client: int, port: int, server: int = ENGINE, server_port: int = 8000) -> int:
        """Add a connection from a client's port; return its flow id."""
        self.directory.flows.append(Flow(client, port, server, server_port, 6))
        return len(self.directory.flows) - 1

    def http(self, flow: int, at: float, kind: int, **more: int) -> None:
        """Add an HTTP row; `server=1` where the server sent it."""
        self._add("http", flow, at, more.pop("server", int(kind in (HEAD, PIECE))), kind=kind, **more)

    def record(self, flow: int, at: float, server: int, nbytes: int) -> None:
        """Add a TLS record of application data."""
        self._add("records", flow, at, server, kind=23, nbytes=nbytes)

    def close(self, flow: int, at: float, server: int, flags: int = 1) -> None:
        """Add a FIN (or the flags given)."""
        self._add("packets", flow, at, server, flags=flags)

    def round(self, host: int, at: float, tag: int, nbytes: int, peer: int = SECOND) -> None:
        """Add the data message of an all-reduce out of a host."""
        flow = (
            self.connect(host, 40_000, peer, 40_001)
            if not self.rows["messages"]
            else self.rows["messages"][0]["flow"]
        )
        self._add(
            "messages", flow, at, 0, end_ns=ns(at), framing=1, kind=1, collective=4, tag=tag, nbytes=nbytes
        )

    def ask(
        self,
        flow: int,
        at: float,
        pieces: list[float],
        end: float | None = None,
        size: int = 100,
        piece: int = 80,
    ) -> None:
        """Add a whole request: POST, streamed pieces, end of the response (None = it stays open)."""
        self.http(flow, at, REQUEST, method=2, nbytes=size)
        self.http(flow, at, PIECE, server=0, nbytes=size)
        self.http(flow, at, END, server=0)
        for i, ts in enumerate(pieces):
            if i == 0:
                self.http(flow, ts, HEAD, status=200, streaming=1)
            self.http(flow, ts, PIECE, nbytes=piece, events=1)
        if end is not None:
            self.http(flow, end, END, server=1)

    def _add(self, table: str, flow: int, at: float, server: int, **more: int) -> None:
        ends = self.directory.flows[flow]
        src, dst = (ends.b, ends.a) if server else (ends.a, ends.b)
        tap = self.taps.get(flow, 0)
        row = {"ts_ns": ns(at), "flow": flow, "way": server, "src": src, "dst": dst, "tap": tap}
        self.rows[table].append({**row, "frame": len(self.rows[table]) + 1, **more})

    def slices(self, seconds: float, tick: int = TICK) -> list[Slice]:
        """Return slices of `tick` ns over the capture."""
        whole = {s.name: self._table(s) for s in (HTTP, RECORDS, PACKETS, MESSAGES)}
        found = []
        for start in range(START, ns(seconds), tick):
            cut = {n: t.take((t["ts_ns"] >= start) & (t["ts_ns"] < start + tick)) for n, t in whole.items()}
            found.append(Slice(start, start + tick, cut, self.directory))
        return found

    def _table(self, schema: Schema) -> Table:
        rows = sorted(self.rows[schema.name], key=lambda r: r["ts_ns"])
        columns: dict[str, Array] = {
            n: np.array([r.get(n, 0) for r in rows], dtype=c.dtype) for n, c in schema.columns.items()
        }
        return Table(schema, columns)

    def graph(self) -> GraphRows:
        """Return what the graph family would know: every connection served at its second end, one tap."""
        flows = self.directory.flows
        return GraphRows(
            "host",
            [],
            {},
            vantage=np.array([[self.taps.get(i, 0)] * 2 for i in range(len(flows))], dtype=np.int32),
            ends=np.array([[f.a, f.b] for f in flows], dtype=np.int64),
            server=np.ones(len(flows), dtype=np.int8),
        )


def run(wire: Wire, seconds: float, key: str = "10.9.0.2:8000"):
    """Return (family, {column: values over windows}) for one endpoint; NaN where it has no row yet."""
    family, found = Streams(), []
    with np.errstate(invalid="ignore", divide="ignore"):
        for slice_ in wire.slices(seconds):
            rows = family.update(slice_, {"host": wire.graph()})
            at = rows.keys.index(key) if key in rows.keys else None
            found.append({n: np.nan if at is None else v[at] for n, v in rows.columns.items()})
            found[-1]["onset"] = {n: int(v[at]) for n, v in rows.onset_ns.items()} if at is not None else {}
    return family, {n: [w[n] for w in found] for n in (*family.SPEC.columns, "onset")}


def steady(
    wire: Wire, streams: int = 4, until: float = 2.0, port: int = 5000, client: int = CLIENT
) -> list[int]:
    """Streams that begin before the capture and get a piece every step."""
    flows = [wire.connect(CLIENT, 5000 + i) for i in range(streams)]
    for i, flow in enumerate(flows):
        for at in np.arange(0.01, until, STEP):
            wire.http(flow, float(at) + i * 1e-4, PIECE, nbytes=80, events=1)
    return flows


def with_rounds(wire: Wire, until: float = 2.0, sizes: dict[int, int] | None = None) -> None:
    """Two rounds a step at the engine's host, the second a millisecond before the pieces."""
    for k, at in enumerate(np.arange(0.009, until, STEP)):
        for r in range(2):
            size = (sizes or {}).get(k, 1000)
            wire.round(ENGINE, float(at) - 0.02 * (1 - r), 10 + 2 * k + r, size)
