"""InfiniBand transport headers to the `roce` table: RoCEv2, RoCEv1 and native InfiniBand.

Sources: InfiniBand Architecture Specification, volume 1, chapters 7 (LRH), 8 (GRH) and 9 (BTH and its
extensions), annexes A16 (RoCEv1) and A17 (RoCEv2).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from skewscope.core.directory import LID_HIGH
from skewscope.core.schemas import ROCE
from skewscope.core.tables import Array, Table
from skewscope.wire.headers import NOT_IP, PROTO_GRH, PROTO_LRH
from skewscope.wire.jit import inlined, njit
from skewscope.wire.layout import Row, Rows, i64, row_type
from skewscope.wire.load import Bytes, be16, be32, be64, bytes_of, frozen, u8
from skewscope.wire.roce_codes import (
    AETH,
    CNP,
    DETH,
    FETH,
    GRH,
    HEADERS,
    IMMEDIATE,
    KNOWN,
    LENGTHS,
    RDETH,
    RETH,
    XRCETH,
)

FAULTS = {
    0: "parsed",
    1: "cut within its transport headers",
    2: "lengths contradict",
    3: "not RoCE: unknown header version",
    4: "not RoCE: reserved bits set",
    5: "not RoCE: no such opcode",
    6: "not an InfiniBand transport packet",
}
"""Reason codes of the `fault` column. Only rows with 0 and 1 are RoCE."""

ROCE_PORT = 4791
PROTO_TCP, PROTO_UDP = 6, 17
ICRC_BYTES = 4
BTH_BYTES, LRH_BYTES, GRH_BYTES = 12, 8, 40
LNH_GRH, LNH_BTH = 3, 2
"""Link next header of an LRH: what follows it. 0 and 1 are raw packets, without transport headers."""
NEXT_IS_BTH = 0x1B
"""GRH next header value of InfiniBand transport."""

Interning = Callable[[Array], Array]
"""Address keys uint64 (n, 2) to address ids uint32 (n,)."""


class Frames(NamedTuple):
    """The columns of a `packets` table that the kernel reads, each of shape (n,)."""

    ts: Array
    tap: Array
    frame: Array
    flow: Array
    way: Array
    src: Array
    dst: Array
    wire: Array
    proto: Array
    payload: Array
    captured: Array
    at: Array
    ecn: Array
    dscp: Array


@inlined
def _be24(buf: Bytes, at: int) -> int:
    """Return the 24-bit number at `at`, which is not the first byte of the buffer."""
    return be32(buf, at - 1) & 0xFFFFFF


@inlined
def _extensions(buf: Bytes, at: int, end: int, headers: int, row: Row) -> int:
    """Read the headers behind the BTH in their order; returns 1 where the capture ends within them."""
    if headers & RDETH:
        at += 4
    if headers & DETH:
        if at + 8 > end:
            return 1
        row["has"] |= DETH
        row["src_qp"] = _be24(buf, at + 5)
        at += 8
    if headers & XRCETH:
        at += 4
    if headers & FETH:
        at += 4
    if headers & RETH:
        if at + 16 > end:
            return 1
        row["has"] |= RETH
        row["address"] = be64(buf, at)
        row["dma_bytes"] = be32(buf, at + 12)
        at += 16
    if headers & AETH:
        if at + 4 > end:
            return 1
        row["has"] |= AETH
        row["syndrome"] = u8(buf, at)
        row["msn"] = _be24(buf, at + 1)
        at += 4
    if headers & IMMEDIATE:
        if at + 4 > end:
            return 1
        row["has"] |= IMMEDIATE
        row["immediate"] = be32(buf, at)
    return 0


@inlined
def _transport(buf: Bytes, at: int, end: int, size: int, row: Row) -> int:
    """Parse a BTH and what follows; `size`: its packet's length, ICRC included. Returns the fault."""
    if at + BTH_BYTES > end:
        return 1 if size >= BTH_BYTES + ICRC_BYTES else 2
    flags = u8(buf, at + 1)
    if flags & 15:
        return 3
    reserved = ((u8(buf, at + 4) & 0x3F) << 7) | (u8(buf, at + 8) & 0x7F)
    if reserved & (reserved - 1):  # one bit is how adapters mark packets for adaptive routing
        return 4
    opcode = u8(buf, at)
    headers = HEADERS[opcode]
    if not headers & KNOWN:
        return 5
    payload = size - BTH_BYTES - LENGTHS[opcode] - ((flags >> 4) & 3) - ICRC_BYTES
    if payload < 0 or size & 3:
        return 2
    row["opcode"] = opcode
    row["bits"] = (
        (flags >> 7)
        | ((flags >> 6) & 1) << 1
        | (u8(buf, at + 4) >> 7) << 2
        | ((u8(buf, at + 4) >> 6) & 1) << 3
        | (u8(buf, at + 8) >> 7) << 4
    )
    row["pkey"] = be16(buf, at + 2)
    row["qp"] = _be24(buf, at + 5)
    row["psn"] = _be24(buf, at + 9)
    row["payload_bytes"] = payload
    if opcode == CNP:
        return 0
    fault = _extensions(buf, at + BTH_BYTES, end, headers, row)
    if at + BTH_BYTES + LENGTHS[opcode] > end:
        fault = 1
    return fault


@inlined
def _global_route(buf: Bytes, at: int, end: int, name: bool, row: Row, keys: Array) -> int:
    """Parse a GRH; fills keys uint64 (4,) with its GIDs where they name the packet. Returns the fault."""
    if at + GRH_BYTES > end:
        return 1
    if u8(buf, at) >> 4 != 6:
        return 6
    tos = (be16(buf, at) >> 4) & 0xFF
    row["ecn"] = tos & 3
    row["dscp"] = tos >> 2
    row["has"] |= GRH
    if name:
        for k in range(4):
            keys[k] = be64(buf, at + 8 + 8 * k)
    return 0 if u8(buf, at + 6) == NEXT_IS_BTH else 6


@inlined
def _routes(buf: Bytes, at: int, end: int, local: bool, row: Row, keys: Array) -> tuple[int, int, int]:
    """Pass LRH and GRH of a packet that is not in IP; returns (offset of the BTH, its size, fault).

    Native packets are named by their local ids, which all of them have: few within a subnet have a GRH,
    and a host must not get two names.
    """
    size = i64(-1)
    if local:
        if at + LRH_BYTES > end:
            return at, 0, 1
        keys[0], keys[1] = LID_HIGH, np.uint64(be16(buf, at + 6))
        keys[2], keys[3] = LID_HIGH, np.uint64(be16(buf, at + 2))
        following = u8(buf, at + 1) & 3
        size = (be16(buf, at + 4) & 0x7FF) * 4 - LRH_BYTES
        at += LRH_BYTES
        if following == LNH_BTH:
            return at, size, 0
        if following != LNH_GRH:
            return at, 0, 6
        size -= GRH_BYTES
    fault = _global_route(buf, at, end, not local, row, keys)
    if fault == 0:
        told = be16(buf, at + 4)
        if local and told != size:
            fault = 2
        size = told
    return at + GRH_BYTES, size, fault


@njit
def parse_frames(buf: Array, f: Frames, rows: Array, out: Rows, keys: Array) -> None:
    """Fill out (rows of ROCE) for the packets at `rows` int64 (n,).

    keys: uint64 (m, 4), source and destination of the m packets that are not in IP, zeros where cut off.
    """
    outside_ip, size_of_buf = 0, len(buf)
    data = bytes_of(buf)
    for n in range(len(rows)):
        i = rows[n]
        row = out[n]
        row["ts_ns"] = f.ts[i]
        row["tap"] = f.tap[i]
        row["frame"] = f.frame[i]
        row["flow"] = f.flow[i]
        row["way"] = f.way[i]
        row["src"] = f.src[i]
        row["dst"] = f.dst[i]
        row["wire_bytes"] = f.wire[i]
        row["ecn"] = f.ecn[i]
        row["dscp"] = f.dscp[i]
        at = i64(f.at[i])
        end = min(at + i64(f.captured[i]), size_of_buf)
        size = i64(f.payload[i])
        fault = i64(0)
        if f.proto[i] != PROTO_UDP:
            at, size, fault = _routes(data, at, end, f.proto[i] == PROTO_LRH, row, keys[outside_ip])
            outside_ip += 1
        if fault == 0:
            fault = _transport(data, at, end, size, row)
        row["fault"] = fault


def candidates(packets: Table) -> Array:
    """Return the rows, int64 (n,), of packets that may carry InfiniBand transport headers."""
    rows: Array = np.flatnonzero(packets["proto"] != PROTO_TCP)  # most batches have few or none of these
    if not len(rows):
        return rows
    proto, fault, dport, at = (packets[name][rows] for name in ("proto", "fault", "dport", "payload_at"))
    udp = (dport == ROCE_PORT) & (proto == PROTO_UDP) & (fault == 0)
    outside_ip = ((proto == PROTO_GRH) | (proto == PROTO_LRH)) & (fault == NOT_IP)
    return rows[np.flatnonzero((udp | outside_ip) & (at >= 0))]


def frames_of(packets: Table) -> Frames:
    """Return the columns of a `packets` table that the kernel reads."""
    names = (
        "ts_ns", "tap", "frame", "flow", "way", "src", "dst", "wire_bytes", "proto", "payload_bytes",
        "captured_bytes", "payload_at", "ecn", "dscp",
    )  # fmt: skip
    return Frames(*(np.ascontiguousarray(packets[n]) for n in names))


def parse(buf: Array, packets: Table, intern: Interning) -> Table:
    """Return the `roce` rows of those packets whose `payload_at` points to InfiniBand headers in buf.

    Never raises for what the bytes say: rows that cannot be read have a reason in `fault`. `intern`
    names the addresses of RoCEv1 and native packets, which are also put into `packets`.
    """
    rows = candidates(packets)
    if not len(rows):
        return ROCE.empty()
    out = np.zeros(len(rows), row_type(ROCE))
    outside_ip = np.flatnonzero(packets["proto"][rows] != PROTO_UDP)
    keys = np.zeros((len(outside_ip), 4), np.uint64)
    parse_frames(frozen(buf), frames_of(packets), rows, out, keys)
    named = keys.any(axis=1)
    if named.any():
        ids = intern(keys[named].reshape(-1, 2)).reshape(-1, 2)
        for k, column in enumerate(("src", "dst")):
            out[column][outside_ip[named]] = packets[column][rows[outside_ip[named]]] = ids[:, k]
    return Table(ROCE, {name: out[name] for name in ROCE.columns})
