"""Hand-made packets, messages and HTTP rows of several hosts at several taps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from skewscope.core.directory import Directory, Flow, Tap
from skewscope.core.features import FeatureRows, Slice
from skewscope.core.schemas import HOLES, HTTP, MESSAGES, PACKETS
from skewscope.core.tables import Schema, Table

MS = 1_000_000
TICK_MS = 100
START = 1_700_000_000_000_000_000
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16


def at(ms: float) -> int:
    """Return a time of the hand-made capture, ns."""
    return START + round(ms * MS)


@dataclass
class Net:
    """Collects rows; `slices` cuts them as the engine would. Times in ms."""

    taps: Sequence[str] = ("n0", "n1", "n2", "n3")
    directory: Directory = field(default_factory=Directory)
    rows: dict[str, list[dict[str, int]]] = field(
        default_factory=lambda: {"packets": [], "messages": [], "http": [], "holes": []}
    )
    _frames: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.directory.taps += [Tap(i, f"{name}.pcap") for i, name in enumerate(self.taps)]

    def host(self, address: str) -> int:
        """Return the id of an address."""
        if address not in self.directory.addresses:
            self.directory.addresses.append(address)
        return self.directory.addresses.index(address)

    def flow(self, a: str, b: str, a_port: int = 40000, b_port: int = 8000, proto: int = 6) -> int:
        """Return a new connection; way 0 is a -> b."""
        self.directory.flows.append(Flow(self.host(a), a_port, self.host(b), b_port, proto))
        return len(self.directory.flows) - 1

    def packet(self, ms: float, flow: int, way: int = 0, tap: int | Sequence[int] = 0, **more: int) -> None:
        """Add a packet at one tap, or at several; `after` ms pass from one tap to the next."""
        after = more.pop("after_us", 100) / 1_000
        for n, one in enumerate([tap] if isinstance(tap, int) else tap):
            f = self.directory.flows[flow]
            size = more.get("payload_bytes", 0)
            row = {"wire_bytes": 66 + size, "proto": f.proto, "captured_bytes": size, **more}
            row |= {"sport": f.b_port if way else f.a_port, "dport": f.a_port if way else f.b_port}
            self._add("packets", ms + n * after, flow, way, one, row)

    def data(
        self,
        ms: float,
        flow: int,
        size: int,
        seq: int,
        way: int = 0,
        tap: int | Sequence[int] = 0,
        **more: int,
    ) -> None:
        """Add a data segment."""
        more = {"flags": ACK, "window": 1000, **more}
        self.packet(ms, flow, way, tap, payload_bytes=size, seq=seq % 2**32, **more)

    def ack(
        self, ms: float, flow: int, ack: int, way: int = 1, tap: int | Sequence[int] = 0, **more: int
    ) -> None:
        """Add a bare acknowledgement."""
        more = {"flags": ACK, "window": 1000, **more}
        self.packet(ms, flow, way, tap, ack=ack % 2**32, **more)

    def message(
        self, ms: float, flow: int, tag: int, way: int = 0, tap: int | Sequence[int] = 0, **more: int
    ) -> None:
        """Add a framed message, and the packet that carried it."""
        more = {"kind": 1, "collective": 4, "nbytes": 512, **more}
        for one in [tap] if isinstance(tap, int) else tap:
            self.packet(ms, flow, way, one, payload_bytes=more["nbytes"], flags=ACK)
            self._add("messages", ms, flow, way, one, {"tag": tag, "framing": 1, "end_ns": at(ms), **more})

    def http(self, ms: float, flow: int, kind: int, way: int = 0, tap: int = 0, **more: int) -> None:
        """Add an HTTP row: kind 1 request, 2 response."""
        self._add("http", ms, flow, way, tap, {"kind": kind, **more})

    def hole(self, ms: float, flow: int, way: int = 0, tap: int = 0) -> None:
        """Say that the capture lost something."""
        self._add("holes", ms, flow, way, tap, {})

    def _add(self, table: str, ms: float, flow: int, way: int, tap: int, more: dict[str, int]) -> None:
        f = self.directory.flows[flow]
        src, dst = (f.b, f.a) if way else (f.a, f.b)
        if table == "packets":
            self._frames[tap] = self._frames.get(tap, 0) + 1
        row = {"ts_ns": at(ms), "flow": flow, "way": way, "src": src, "dst": dst, "tap": tap}
        frame = {} if table == "holes" else {"frame": self._frames.get(tap, 0)}
        self.rows[table].append({**row, **frame, **more})

    def slices(self, until_ms: float | None = None) -> list[Slice]:
        """Return the slices up to a time, or to the last row; the last one says so."""
        last = max((r["ts_ns"] for rows in self.rows.values() for r in rows), default=START)
        end = last + 1 if until_ms is None else at(until_ms)
        whole = {s.name: self._table(s) for s in (PACKETS, MESSAGES, HTTP, HOLES)}
        found = []
        for start in range(START, end, TICK_MS * MS):
            stop = start + TICK_MS * MS
            cut = {n: t.take((t["ts_ns"] >= start) & (t["ts_ns"] < stop)) for n, t in whole.items()}
            found.append(Slice(start, stop, cut, self.directory, stop >= end))
        return found

    def _table(self, schema: Schema) -> Table:
        rows = sorted(self.rows[schema.name], key=lambda r: r["ts_ns"])
        return Table(
            schema,
            {n: np.array([r.get(n, 0) for r in rows], dtype=c.dtype) for n, c in schema.columns.items()},
        )


def play(net: Net, *families: object, until_ms: float | None = None) -> list[dict[str, FeatureRows]]:
    """Feed the slices to families in order; return the rows by scope of every slice."""
    found = []
    with np.errstate(invalid="ignore", divide="ignore"):
        for slice_ in net.slices(until_ms):
            rows: dict[str, FeatureRows] = {}
            for family in families:
                rows[family.SPEC.scope] = family.update(slice_, rows)  # type: ignore[attr-defined]
            found.append(rows)
    return found


def cell(rows: FeatureRows, key: str, name: str) -> float:
    """Return one value."""
    return float(rows.columns[name][list(rows.keys).index(key)])


def total(found: Sequence[dict[str, FeatureRows]], scope: str, key: str, name: str) -> float:
    """Return the sum of a column over slices, slices without the row left out."""
    return sum(cell(r[scope], key, name) for r in found if key in r[scope].keys)
