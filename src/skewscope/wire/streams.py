"""Packets of one tap to messages, HTTP elements, TLS records and holes.

The tables do not depend on how the packets are split into `feed` calls. Rows stand in the order in
which their elements ended; those of one call are tables of the schemas in core/schemas.py.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from skewscope.core.directory import Directory
from skewscope.core.schemas import HOLES, HTTP, MESSAGES, RECORDS
from skewscope.core.tables import Array, Schema, Table
from skewscope.wire import framing, layout, tcp
from skewscope.wire.held import HELD_COST, stow
from skewscope.wire.http2_heads import HeadReader
from skewscope.wire.layout import Batch, Framing, Out, Tcp
from skewscope.wire.spans import held_spare, span_spare

TABLES: dict[str, Schema] = {"messages": MESSAGES, "http": HTTP, "records": RECORDS, "holes": HOLES}
_FIRST_SLOTS = 256
_SPANS = 1 << 15
_ROWS = 1 << 13
MAX_FLOW_ID = 1 << 26
"""Flows beyond it are passed over: tables indexed by flow id stay below half a gigabyte."""


@dataclass(frozen=True)
class Limits:
    """What one tap may hold in memory. Beyond a limit a hole is declared or a flow is forgotten."""

    flows: int = 65536
    """Connections followed at a time; the one longest silent makes room."""
    held_segments: int = 2048
    """Segments waiting behind a gap, per direction."""
    held_bytes: int = 4 << 20
    """Bytes waiting behind a gap, per direction, 96 bytes charged per segment."""
    total_bytes: int = 64 << 20
    """The same over all connections."""
    age_ns: int = 30_000_000_000
    """How long a gap is awaited without a word from the other side."""
    idle_ns: int = 600_000_000_000
    """How long a silent connection keeps its place when another one needs one."""
    h2_streams: int = 1 << 18
    """HTTP/2 streams with event counts at a time, each direction counts; further ones make rows without."""


class StreamFramer:
    """Reassembles and frames the TCP flows of one tap; no I/O, no clock, bounded memory.

    Hostile or damaged input never raises. Memory: `Limits`, plus 5 bytes per flow id of the run.
    """

    def __init__(self, directory: Directory, limits: Limits | None = None) -> None:
        self._directory = directory
        self._limits = limits or Limits()
        cells = np.full(layout.TCP_CELLS, 0, np.int64)
        cells[[layout.NEWEST, layout.OLDEST, layout.FREE_SLOT, layout.FREE_HELD]] = -1
        lim = self._limits
        segments = max(1, lim.held_segments)
        limits_row = np.array([segments, lim.held_bytes, lim.total_bytes, lim.age_ns, lim.idle_ns], np.int64)
        self._tcp = Tcp(
            slot_of=np.full(1, -1, np.int32),
            slots=np.zeros(0, layout.SLOT),
            streams=np.zeros(0, layout.STREAM),
            held=np.zeros(0, layout.HELD),
            cells=cells,
            limits=limits_row,
            spans=np.zeros(0, layout.SPAN),
        )
        self._tcp = self._tcp._replace(spans=np.zeros(_SPANS + int(span_spare(self._tcp)), layout.SPAN))
        self._framing = Framing(
            links=np.zeros(0, layout.LINK),
            framers=np.zeros(0, layout.FRAMER),
            carry=np.zeros((0, layout.CARRY), np.uint8),
            h2=np.zeros(1, layout.H2STREAM),
            protocols=np.zeros(1, np.uint8),
        )
        self._arena = _frozen(np.zeros(0, np.uint8))
        self._out = layout.new_out(_ROWS)
        self._heads = HeadReader()
        self._last_ts = 0

    def feed(self, packets: Table, buffer: npt.NDArray[np.uint8]) -> dict[str, Table]:
        """Take a batch; return the rows of the elements that ended in it, by table name.

        packets: a `packets` table whose `payload_at` points into `buffer`, uint8 (bytes,), neither
        kept nor changed. Rows with a fault, without flow or not TCP are passed over.
        """
        parts: dict[str, list[Table]] = {name: [] for name in TABLES}
        if len(packets):
            batch = _batch(packets, len(buffer))
            raw = _frozen(buffer)
            self._make_room(batch)
            done = 0
            while done < len(batch.ts):
                self._make_held_room()
                done = int(tcp.deliver(self._tcp, batch, done))
                self._frame(raw, parts)
            self._last_ts = int(batch.ts[-1])
            self._stow(raw)
        return {name: Table.concat(TABLES[name], rows) for name, rows in parts.items()}

    def finish(self) -> dict[str, Table]:
        """End all flows at the last packet's time; return what was pending, as `feed` does.

        Gaps become holes; a message in progress is given with end_ns = 0. Nothing is pending then.
        """
        parts: dict[str, list[Table]] = {name: [] for name in TABLES}
        empty = _frozen(np.zeros(0, np.uint8))
        done = 0
        while done < len(self._tcp.slots):
            done = int(tcp.flush(self._tcp, done, self._last_ts))
            self._frame(empty, parts)
        return {name: Table.concat(TABLES[name], rows) for name, rows in parts.items()}

    def protocols(self) -> dict[int, str]:
        """Return what each flow id spoke, as far as its content told: a name of layout.PROTOCOLS."""
        seen = self._framing.protocols
        return {int(k): layout.PROTOCOLS[int(seen[k])] for k in np.flatnonzero(seen)}

    def counters(self) -> dict[str, int]:
        """Return how often limits were met: flows evicted, segments that belonged to no stream."""
        cells = self._tcp.cells
        return {"flows_evicted": int(cells[layout.EVICTED]), "stray_segments": int(cells[layout.STRAYED])}

    def _make_room(self, batch: Batch) -> None:
        """Grow what is indexed by flow id or slot, so that the kernels never need to."""
        t, fr = self._tcp, self._framing
        flows = int(batch.flow.max()) + 1
        if flows > len(t.slot_of):
            more = max(flows, 2 * len(t.slot_of)) - len(t.slot_of)
            t = t._replace(slot_of=np.concatenate([t.slot_of, np.full(more, -1, np.int32)]))
            fr = fr._replace(protocols=np.concatenate([fr.protocols, np.zeros(more, np.uint8)]))
        new = np.unique(batch.flow[t.slot_of[batch.flow] < 0])
        have = len(t.slots)
        need = min(int(t.cells[layout.USED]) + len(new), max(1, self._limits.flows))
        if need > have:
            size = min(max(need, 2 * have, _FIRST_SLOTS), max(1, self._limits.flows))
            t, fr = _grow_slots(t, fr, size)
        self._tcp, self._framing = t, fr

    def _make_held_room(self) -> None:
        t = self._tcp
        have = len(t.held)
        if have - int(t.cells[layout.LIVE]) >= int(held_spare(t)):
            return
        size = max(2 * have, have + 2 * int(held_spare(t)))
        held = np.zeros(size, layout.HELD)
        held[:have] = t.held
        held["next"][have : size - 1] = np.arange(have + 1, size)
        held["next"][size - 1] = t.cells[layout.FREE_HELD]
        t.cells[layout.FREE_HELD] = have
        self._tcp = t._replace(held=held)

    def _frame(self, raw: Array, parts: dict[str, list[Table]]) -> None:
        """Frame the spans made so far and collect their rows."""
        t = self._tcp
        count = int(t.cells[layout.SPANS])
        spans = t.spans[:count]
        largest = int(spans["size"].max(initial=0))
        rows = int(framing.rows_spare(largest))
        if rows > len(self._out.http):
            self._out = layout.new_out(rows + _ROWS)  # 16 bytes of text a row are four times the span
        done = 0
        while done < count:
            done = int(framing.frame(t.spans, done, count, raw, self._arena, self._framing, self._out))
            self._collect(raw)
            if self._out.cells[layout.PAUSED]:
                self._decode(parts)
            else:
                _drain(self._out, self._directory, parts)
        holes = spans[spans["kind"] == layout.HOLE]
        if len(holes):
            parts["holes"].append(_holes(holes))
        t.cells[layout.SPANS] = 0

    def _collect(self, raw: Array) -> None:
        """Keep the pieces of header blocks found in the spans just framed."""
        pieces = self._out.pieces[: self._out.cells[layout.PIECES]]
        for stream, at, size, first in pieces.tolist():
            source, start = (raw, at) if at >= 0 else (self._arena, -2 - at)
            self._heads.add(stream, source[start : start + size].tobytes(), first == 1)
        self._out.cells[layout.PIECES] = 0

    def _decode(self, parts: dict[str, list[Table]]) -> None:
        """Decode the header block at which framing stopped and leave its fields in the framer row."""
        out, fr = self._out, self._framing
        c = out.cells
        if len(out.http) - c[layout.HTTP_ROWS] < 2 or len(out.text) - c[layout.TEXT_BYTES] < layout.CARRY:
            paused = c[layout.PAUSED]
            _drain(out, self._directory, parts)
            c[layout.PAUSED] = paused
        if fr.h2["next"][0] == 0 and len(fr.h2) <= self._limits.h2_streams:
            self._framing = fr = fr._replace(h2=_grow_h2(fr.h2, self._limits.h2_streams))
        stream = int(c[layout.PAUSED]) - 1
        f = fr.framers[stream]
        head = self._heads.read(stream, int(f["tables"]), int(f["block_bytes"]), bool(f["block_cut"]))
        f["head"], f["status"], f["method"] = head.kind, head.status, head.method
        f["streaming"], f["length"], f["content"] = head.streaming, head.length, head.content
        f["end_status"], f["target_bytes"] = head.end_status, len(head.path)
        if head.path:
            at, cut = int(c[layout.TEXT_BYTES]), int(c[layout.TEXT_CUTS])
            out.text[at : at + len(head.path)] = np.frombuffer(head.path, np.uint8)
            out.cuts[cut] = at, at + len(head.path)
            c[layout.TEXT_BYTES], c[layout.TEXT_CUTS] = at + len(head.path), cut + 1
            f["target"] = cut + 1

    def _stow(self, raw: Array) -> None:
        """Keep the bytes of the segments still held; the batch buffer belongs to the caller."""
        t = self._tcp
        size = 0
        if t.cells[layout.LIVE]:
            size = int(t.cells[layout.COST]) - HELD_COST * int(t.cells[layout.LIVE])
        target = np.empty(size, np.uint8)
        if t.cells[layout.LIVE]:
            stow(t, raw, self._arena, target)
        self._arena = _frozen(target)


def merged(tables: dict[str, Table], more: dict[str, Table]) -> dict[str, Table]:
    """Return `tables` with the rows of `more` behind those of the same name."""
    both = {n: Table.concat(t.schema, [tables[n], t]) for n, t in more.items() if n in tables}
    return {**tables, **more, **both}


def _frozen(values: Array) -> Array:
    """Return a read-only contiguous view: one type for the kernels, whoever owns the bytes."""
    view = np.ascontiguousarray(values, np.uint8).view()
    view.flags.writeable = False
    return view


def _batch(packets: Table, size: int) -> Batch:
    """Return the columns that reassembly needs; references outside the buffer count as not captured."""
    captured = packets["captured_bytes"].astype(np.int64)
    at = packets["payload_at"]
    payload = packets["payload_bytes"].astype(np.int64)
    captured = np.where((at < 0) | (at > size), 0, np.minimum(np.minimum(captured, payload), size - at))
    columns = [packets[n] for n in ("ts_ns", "frame", "tap", "flow", "way", "src", "dst", "proto", "fault")]
    rest = [packets[n] for n in ("seq", "ack", "flags")]
    at = np.where(captured > 0, at, 0)
    columns[3] = np.where(columns[3] < MAX_FLOW_ID, columns[3], np.uint32(0))
    return Batch(*(np.ascontiguousarray(c) for c in (*columns, payload, captured, at, *rest)))


def _grow_slots(t: Tcp, fr: Framing, size: int) -> tuple[Tcp, Framing]:
    """Return the state with room for `size` flows; the new slots are free."""
    have = len(t.slots)
    slots = np.zeros(size, layout.SLOT)
    slots[:have] = t.slots
    slots["older"][have : size - 1] = np.arange(have + 1, size)
    slots["older"][size - 1] = t.cells[layout.FREE_SLOT]
    t.cells[layout.FREE_SLOT] = have
    streams = np.zeros(2 * size, layout.STREAM)
    streams[: 2 * have] = t.streams
    framers = np.zeros(2 * size, layout.FRAMER)
    framers[: 2 * have] = fr.framers
    links = np.zeros(size, layout.LINK)
    links[:have] = fr.links
    carry = np.zeros((2 * size, layout.CARRY), np.uint8)
    carry[: 2 * have] = fr.carry
    return t._replace(slots=slots, streams=streams), fr._replace(links=links, framers=framers, carry=carry)


def _grow_h2(h2: Array, limit: int) -> Array:
    """Return the pool of HTTP/2 streams with more free rows; it must have none. Row 0 stays the anchor."""
    have = len(h2)
    size = min(max(2 * have, _FIRST_SLOTS), limit + 1)
    more = np.zeros(size, layout.H2STREAM)
    more[:have] = h2
    more["next"][have : size - 1] = np.arange(have + 1, size)
    more["next"][0] = have if size > have else 0
    return more


def _table(schema: Schema, rows: Array) -> Table:
    return Table(schema, {name: rows[name].copy() for name in schema.columns})


def _drain(out: Out, directory: Directory, parts: dict[str, list[Table]]) -> None:
    """Move the rows made so far into tables and name the request targets."""
    c = out.cells
    http = out.http[: c[layout.HTTP_ROWS]]
    for k in np.flatnonzero(http["target"]):
        first, last = out.cuts[int(http["target"][k]) - 1]
        http["target"][k] = directory.target(out.text[first:last].tobytes().decode("latin-1"))
    made = (
        ("messages", MESSAGES, out.messages[: c[layout.MESSAGE_ROWS]]),
        ("http", HTTP, http),
        ("records", RECORDS, out.records[: c[layout.RECORD_ROWS]]),
    )
    for name, schema, rows in made:
        if len(rows):
            parts[name].append(_table(schema, rows))
    c[:] = 0


def _holes(spans: Array) -> Table:
    same = {n: spans[n].copy() for n in ("tap", "flow", "way", "src", "dst")}
    seq = (spans["pos"] & 0xFFFFFFFF).astype(np.uint32)
    return Table(HOLES, {**same, "ts_ns": spans["ts"].copy(), "seq": seq, "nbytes": spans["skip"].copy()})
