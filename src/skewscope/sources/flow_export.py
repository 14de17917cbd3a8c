"""sFlow, NetFlow v9 and IPFIX: UDP payloads to `flow_records` and `counters`, from a capture or a socket."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from skewscope.core.directory import Directory
from skewscope.core.schemas import COUNTERS, FLOW_RECORDS
from skewscope.core.tables import Array, Table
from skewscope.sources.counters import Counters
from skewscope.sources.documents import MAX_SOURCES
from skewscope.sources.format import Origin
from skewscope.wire import netflow, sflow
from skewscope.wire.netflow import NetflowDecoder
from skewscope.wire.packets import PacketParser

UDP = 17
ROCE_PORT = 4791
LEAST_BYTES = 20
FAR_NS = 3650 * 86400 * 10**9
"""Times further than ten years from the arrival are of a clock that was never set."""


class Payload(NamedTuple):
    """A datagram as it arrived."""

    ts_ns: int
    frame: int
    """Frame number in a capture, datagram number at a socket; from 1."""
    exporter: str
    data: bytes


def is_export(data: bytes) -> bool:
    """Whether a payload is a whole datagram of one of the three protocols."""
    return netflow.looks_right(data) or sflow.looks_right(data)


def candidates(packets: Table, buf: Array) -> Array:
    """Return the rows int64 (n,) of UDP packets, captured whole, whose first bytes could be an export.

    buf: uint8, what `payload_at` points into.
    """
    size = packets["payload_bytes"]
    rows = np.flatnonzero(
        (packets["proto"] == UDP)
        & (size >= LEAST_BYTES)
        & (packets["captured_bytes"] == size)
        & (packets["dport"] != ROCE_PORT)
        & (packets["payload_at"] >= 0)
    )
    if not len(rows):
        return rows
    at = packets["payload_at"][rows]
    first = [buf[at + k] for k in range(4)]
    low = first[0] == 0
    short = low & ((first[1] == netflow.V9) | (first[1] == netflow.IPFIX))
    long = low & (first[1] == 0) & (first[2] == 0) & (first[3] == sflow.VERSION)
    return np.asarray(rows[short | long])


class FlowExports:
    """All exporters of one capture or socket: templates, sampling rates, and what could not be read."""

    def __init__(self, directory: Directory, parser: PacketParser) -> None:
        """`parser`: of the run, for the ids of addresses and for sampled headers."""
        self.directory = directory
        self._parser = parser.twin()
        self._netflow = NetflowDecoder()
        self._counts: Counter[str] = Counter()
        self._untimed = self._odd = 0
        self._drops: dict[str, int] = {}
        self.datagrams: Counter[str] = Counter()
        self._rows: Counter[str] = Counter()

    def feed(self, payloads: Sequence[Payload], origin: Origin) -> dict[str, Table]:
        """Return the tables of some datagrams; rows of other datagrams do not come."""
        records: list[Table] = []
        samples: list[tuple[Payload, str, sflow.Sample]] = []
        counters = Counters(origin, "sflow")
        for payload in payloads:
            if sflow.looks_right(payload.data):
                self._sflow(payload, counters, samples)
            elif payload.data[:2] in {b"\x00\x09", b"\x00\x0a"}:
                rows = self._netflow.feed(payload.data, payload.exporter)
                self.datagrams["IPFIX" if payload.data[1] == netflow.IPFIX else "NetFlow v9"] += 1
                if len(rows):
                    records.append(self._records(rows, payload, origin))
            else:
                self._counts["datagrams of another kind"] += 1
        if samples:
            records.append(self._sampled(samples, origin))
        tables = counters.take()
        flows = Table.concat(FLOW_RECORDS, records)
        self._rows.update(flow_records=len(flows), counter_readings=len(tables[COUNTERS.name]))
        return {FLOW_RECORDS.name: flows, COUNTERS.name: tables[COUNTERS.name]}

    def _sflow(
        self, payload: Payload, counters: Counters, samples: list[tuple[Payload, str, sflow.Sample]]
    ) -> None:
        said = sflow.decode(payload.data, self._counts)
        if said is None:
            return
        self.datagrams["sFlow"] += 1
        if said.drops:
            self._drops[said.agent] = max(self._drops.get(said.agent, 0), said.drops)
        for reading in said.counters:
            where = f"{said.agent}/if{reading.interface}"
            for name, value in reading.values.items():
                counters.add(payload.ts_ns, payload.frame, where, name, value)
        samples += [(payload, said.agent, sample) for sample in said.samples]

    def _records(self, rows: Array, payload: Payload, origin: Origin) -> Table:
        """Turn FLOW rows (n,) into a table; counts are scaled up by the sampling rate."""
        n = len(rows)
        keys = np.empty((2 * n, 2), np.uint64)
        keys[:n, 0], keys[:n, 1] = rows["src_high"], rows["src_low"]
        keys[n:, 0], keys[n:, 1] = rows["dst_high"], rows["dst_low"]
        ids = self._parser.names.address_ids(keys)
        ids[(keys == 0).all(axis=1)] = 0
        first, last = rows["first_ns"].copy(), rows["last_ns"].copy()
        odd = (np.abs(first - payload.ts_ns) > FAR_NS) | (np.abs(last - payload.ts_ns) > FAR_NS)
        odd |= last < first
        first[odd] = last[odd] = payload.ts_ns
        self._odd += int(odd.sum())
        self._untimed += int(n - rows["timed"].sum())
        inputs, of_row = np.unique(rows["input"], return_inverse=True)
        entities = [
            self.directory.entities.id(f"{payload.exporter}/if{k}" if k else payload.exporter)
            for k in inputs.tolist()
        ]
        rate = np.maximum(rows["sampling"], 1)
        return Table(
            FLOW_RECORDS,
            {
                "ts_ns": first,
                "source": np.full(n, origin.source),
                "line": np.full(n, min(payload.frame, 2**32 - 1)),
                "entity": np.array(entities)[of_row],
                "end_ns": last,
                "src": ids[:n],
                "dst": ids[n:],
                **{name: rows[name] for name in ("sport", "dport", "proto", "flags", "dscp")},
                "packets": rows["packets"] * rate,
                "nbytes": rows["nbytes"] * rate,
                "sampling": rate,
            },
        )

    def _sampled(self, samples: list[tuple[Payload, str, sflow.Sample]], origin: Origin) -> Table:
        """Parse the sampled headers as packets."""
        n = len(samples)
        lengths = np.array([len(s.header) for _, _, s in samples])
        buf = np.frombuffer(b"".join(s.header for _, _, s in samples) + bytes(8), np.uint8)
        ts = np.array([p.ts_ns for p, _, _ in samples])
        size = np.array([min(s.frame_bytes, 2**31) for _, _, s in samples])
        at = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        links = np.array([s.link for _, _, s in samples], np.uint16)
        packets, _ = self._parser.parse(buf, ts, at, lengths, np.maximum(size, lengths), 0, 1, links)
        rate = np.array([s.rate for _, _, s in samples])
        wheres = [self.directory.entities.id(f"{agent}/if{s.interface}") for _, agent, s in samples]
        whole = packets["src"] > 0
        self._counts["sampled frames that are not IP"] += int(n - whole.sum())
        table = Table(
            FLOW_RECORDS,
            {
                "ts_ns": ts,
                "end_ns": ts,
                "source": np.full(n, origin.source),
                "line": np.array([min(p.frame, 2**32 - 1) for p, _, _ in samples]),
                "entity": np.array(wheres),
                **{
                    name: packets[name] for name in ("src", "dst", "sport", "dport", "proto", "flags", "dscp")
                },
                "packets": rate.astype(np.float64),
                "nbytes": rate * size.astype(np.float64),
                "sampling": rate,
            },
        )
        return table.take(whole)

    def notes(self) -> list[str]:
        """Return one line about each thing that could not be read, and what was read."""
        out = [f"{count} {kind} datagrams were read" for kind, count in self.datagrams.items()]
        given = [f"{count} {name.replace('_', ' ')}" for name, count in self._rows.items() if count]
        out += [f"they gave {' and '.join(given)}"] if given else []
        for why, count in (self._counts + self._netflow.counts).items():
            out.append(f"flow export: {count} {why}")
        if self._netflow.templates:
            out.append(f"{len(self._netflow.templates)} templates of NetFlow or IPFIX are known")
        if self._untimed:
            out.append(f"{self._untimed} flow records have no times: they got that of the export")
        if self._odd:
            out.append(f"{self._odd} flow records have impossible times: they got that of arrival")
        if self._drops:
            out.append(f"agents lost {sum(self._drops.values())} samples before they could send them")
        return out


class CapturedExports:
    """The exports in one capture file; it becomes a source of the run with the first of them."""

    def __init__(self, path: Path, directory: Directory, parser: PacketParser) -> None:
        self._path, self._directory, self._parser = path, directory, parser
        self._exports: FlowExports | None = None
        self._origin: Origin | None = None

    def feed(self, packets: Table, buf: Array) -> dict[str, Table]:
        """Return the tables of the exports in a batch; none where there are no exports."""
        payloads = [p for p in self._payloads(packets, buf, candidates(packets, buf)) if is_export(p.data)]
        if not payloads:
            return {}
        if self._exports is None or self._origin is None:
            if len(self._directory.sources) <= MAX_SOURCES:
                self._directory.sources.append(str(self._path))
            self._origin = Origin(self._directory, len(self._directory.sources) - 1)
            self._exports = FlowExports(self._directory, self._parser)
        return self._exports.feed(payloads, self._origin)

    def _payloads(self, packets: Table, buf: Array, rows: Array) -> Iterator[Payload]:
        for row in rows.tolist():
            at, size = int(packets["payload_at"][row]), int(packets["payload_bytes"][row])
            yield Payload(
                int(packets["ts_ns"][row]),
                int(packets["frame"][row]),
                self._directory.addresses[packets["src"][row]],
                buf[at : at + size].tobytes(),
            )

    def notes(self) -> list[str]:
        """Return what `FlowExports.notes` says, nothing where there were no exports."""
        return self._exports.notes() if self._exports else []
