"""The invariant CRC of InfiniBand packets, checked frame by frame: RoCEv2, RoCEv1, native InfiniBand.

Sources: InfiniBand Architecture Specification, volume 1, section 7.8.1 and annexes A16 and A17. CRC-32 of
Ethernet (IEEE 802.3), least significant byte first on the wire, over the packet with its changeable fields
set to ones. The tables let eight bytes be taken at a time ("slicing by eight").
"""

from __future__ import annotations

import numpy as np

from skewscope.core.tables import Array, Table
from skewscope.wire.headers import PROTO_LRH
from skewscope.wire.jit import inlined, inner, njit
from skewscope.wire.layout import i64
from skewscope.wire.load import Bytes, be16, be32, bytes_of, frozen, u8
from skewscope.wire.roce import (
    BTH_BYTES,
    GRH_BYTES,
    ICRC_BYTES,
    LNH_BTH,
    LNH_GRH,
    LRH_BYTES,
    PROTO_UDP,
    candidates,
)

UNKNOWN, RIGHT, WRONG = 0, 1, 2
"""Results: unknown where the frame was cut off or its headers are not understood."""

UDP_BYTES, IPV6_BYTES = 8, 40
MAX_HEAD = 8 + 60 + UDP_BYTES + BTH_BYTES
"""Longest head that is copied to be masked: dummy route, IPv4 with options, UDP, BTH."""
_POLYNOMIAL = 0xEDB88320


def _tables() -> Array:
    """Return uint32 (8, 256): row k is the CRC of a byte followed by k zero bytes."""
    one = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        one = np.where(one & 1, (one >> 1) ^ np.uint32(_POLYNOMIAL), one >> 1).astype(np.uint32)
    rows = [one]
    for _ in range(7):
        rows.append(((rows[-1] >> 8) ^ one[rows[-1] & 0xFF]).astype(np.uint32))
    table = np.stack(rows)
    table.flags.writeable = False
    return table


TABLES: Array = _tables()


@inner
def _crc(crc: int, data: Bytes, at: int, end: int) -> int:
    """Return the running CRC register after data[at:end]."""
    while at + 8 <= end:
        one, two = be32(data, at), be32(data, at + 4)
        crc = i64(
            TABLES[7, (one >> 24) ^ (crc & 255)]
            ^ TABLES[6, ((one >> 16) & 255) ^ ((crc >> 8) & 255)]
            ^ TABLES[5, ((one >> 8) & 255) ^ ((crc >> 16) & 255)]
            ^ TABLES[4, (one & 255) ^ (crc >> 24)]
            ^ TABLES[3, two >> 24]
            ^ TABLES[2, (two >> 16) & 255]
            ^ TABLES[1, (two >> 8) & 255]
            ^ TABLES[0, two & 255]
        )
        at += 8
    while at < end:
        crc = (crc >> 8) ^ i64(TABLES[0, (crc ^ u8(data, at)) & 255])
        at += 1
    return crc


@inlined
def _copy(buf: Bytes, at: int, count: int, head: Array, to: int) -> None:
    for k in range(count):
        head[to + k] = u8(buf, at + k)


@inner
def _ip_start(buf: Bytes, udp: int, size: int) -> int:
    """Return the offset of the IP header before the UDP header at `udp`, or -1.

    The packets table does not hold it, so it is searched backwards and accepted only where version,
    protocol and length agree. size: UDP payload. IPv6 extension headers are not understood.
    """
    for words in range(5, 16):
        at = udp - 4 * words
        if at < 0:
            return -1
        told = i64(0)
        if u8(buf, at) == 0x40 | words and u8(buf, at + 9) == PROTO_UDP:
            told = be16(buf, at + 2) - 4 * words
        elif words == IPV6_BYTES // 4 and u8(buf, at) >> 4 == 6 and u8(buf, at + 6) == PROTO_UDP:
            told = be16(buf, at + 4)
        if told == UDP_BYTES + size:
            return at
    return -1


@inner
def _ip_head(buf: Bytes, bth: int, size: int, head: Array) -> int:
    """Copy and mask the IP and UDP headers before a BTH; returns the bytes filled, 0 = not found."""
    at = _ip_start(buf, bth - UDP_BYTES, size)
    if at < 0:
        return 0
    n = 8 + bth - at
    head[:8] = 0xFF
    _copy(buf, at, bth - at, head, 8)
    if u8(buf, at) >> 4 == 4:
        head[9] = head[16] = head[18] = head[19] = 0xFF
    else:
        head[8] |= 0x0F
        head[9] = head[10] = head[11] = head[15] = 0xFF
    head[n - 2] = head[n - 1] = 0xFF
    return n


@inner
def _mask_global_route(head: Array, at: int) -> None:
    head[at] |= 0x0F
    head[at + 1] = head[at + 2] = head[at + 3] = head[at + 7] = 0xFF


@inner
def _route_head(buf: Bytes, at: int, end: int, local: bool, head: Array) -> tuple[int, int, int]:
    """Copy and mask LRH and GRH at `at`; returns (bytes filled, offset of the BTH, its packet's size).

    No bytes filled: cut off, or not a packet with transport headers.
    """
    if not local:
        if at + GRH_BYTES > end:
            return 0, 0, 0
        head[:8] = 0xFF
        _copy(buf, at, GRH_BYTES, head, 8)
        _mask_global_route(head, 8)
        return 48, at + GRH_BYTES, be16(buf, at + 4)
    if at + LRH_BYTES + GRH_BYTES > end and at + LRH_BYTES + BTH_BYTES + ICRC_BYTES > end:
        return 0, 0, 0
    following = u8(buf, at + 1) & 3
    size = (be16(buf, at + 4) & 0x7FF) * 4
    n = i64(LRH_BYTES)
    if following == LNH_GRH:
        n += GRH_BYTES
    elif following != LNH_BTH:
        return 0, 0, 0
    if at + n > end:
        return 0, 0, 0
    _copy(buf, at, n, head, 0)
    if following == LNH_GRH:  # routers between subnets replace the whole LRH
        head[:LRH_BYTES] = 0xFF
        _mask_global_route(head, LRH_BYTES)
    else:
        head[0] |= 0xF0
    return n, at + n, size - n


@inner
def _check(buf: Bytes, proto: int, at: int, end: int, size: int, head: Array) -> int:
    if proto == PROTO_UDP:
        n = _ip_head(buf, at, size, head) if at <= end else 0
    else:
        n, at, size = _route_head(buf, at, end, proto == PROTO_LRH, head)
    if n == 0 or size < BTH_BYTES + ICRC_BYTES or at + size > end:
        return UNKNOWN
    _copy(buf, at, BTH_BYTES, head, n)
    head[n + 4] = 0xFF
    crc = _crc(i64(0xFFFFFFFF), bytes_of(head), 0, n + BTH_BYTES)
    tail = at + size - ICRC_BYTES
    crc = _crc(crc, buf, at + BTH_BYTES, tail) ^ 0xFFFFFFFF
    told = u8(buf, tail) | u8(buf, tail + 1) << 8 | u8(buf, tail + 2) << 16 | u8(buf, tail + 3) << 24
    return RIGHT if crc == told else WRONG


@njit
def check_frames(
    buf: Array, rows: Array, proto: Array, at: Array, captured: Array, payload: Array, out: Array
) -> None:
    """Fill out uint8 (n,) with the results for the packets at `rows` int64 (n,)."""
    head = np.zeros(MAX_HEAD, np.uint8)
    data = bytes_of(buf)
    for n in range(len(rows)):
        i = rows[n]
        start = i64(at[i])
        end = min(start + i64(captured[i]), i64(len(buf)))
        out[n] = _check(data, i64(proto[i]), start, end, i64(payload[i]), head)


def verify(buf: Array, packets: Table) -> Array:
    """Return uint8 (n,): the result for each row of the `roce` table made from the same packets.

    buf: the buffer into which `payload_at` of `packets` points.
    """
    rows = candidates(packets)
    out = np.zeros(len(rows), np.uint8)
    if len(rows):
        names = ("proto", "payload_at", "captured_bytes", "payload_bytes")
        proto, at, captured, payload = (np.ascontiguousarray(packets[n]) for n in names)
        check_frames(frozen(buf), rows, proto, at, captured, payload, out)
    return out
