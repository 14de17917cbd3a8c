"""sFlow version 5 datagrams: sampled packet headers and interface counters.

Source: sFlow.org, "sFlow Version 5" (structures are XDR, in words of four bytes).
A sampled packet stands for as many as the sampling rate says.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from skewscope.core.directory import address_text

VERSION = 5
MAX_SAMPLES, MAX_RECORDS = 1 << 10, 1 << 8
MAX_HEADER = 2048
ETHERNET, IPV4_HEADER, IPV6_HEADER = 1, 11, 12

INTERFACE = (
    ("ifIndex", 4), ("ifType", 4), ("ifSpeed", 8), ("ifDirection", 4), ("ifStatus", 4), ("ifInOctets", 8),
    ("ifInUcastPkts", 4), ("ifInMulticastPkts", 4), ("ifInBroadcastPkts", 4), ("ifInDiscards", 4),
    ("ifInErrors", 4), ("ifInUnknownProtos", 4), ("ifOutOctets", 8), ("ifOutUcastPkts", 4),
    ("ifOutMulticastPkts", 4), ("ifOutBroadcastPkts", 4), ("ifOutDiscards", 4), ("ifOutErrors", 4),
    ("ifPromiscuousMode", 4),
)  # fmt: skip
ETHERNET_ERRORS = tuple(
    (name, 4)
    for name in (
        "dot3StatsAlignmentErrors", "dot3StatsFCSErrors", "dot3StatsSingleCollisionFrames",
        "dot3StatsMultipleCollisionFrames", "dot3StatsSQETestErrors", "dot3StatsDeferredTransmissions",
        "dot3StatsLateCollisions", "dot3StatsExcessiveCollisions", "dot3StatsInternalMacTransmitErrors",
        "dot3StatsCarrierSenseErrors", "dot3StatsFrameTooLongs", "dot3StatsInternalMacReceiveErrors",
        "dot3StatsSymbolErrors",
    )
)  # fmt: skip
COUNTER_RECORDS = {1: INTERFACE, 2: ETHERNET_ERRORS}
NOT_KNOWN = {4: 0xFFFFFFFF, 8: 0xFFFFFFFFFFFFFFFF}
"""What an agent sends for a counter that it does not have (sFlow 5, 5.3)."""


class Sample(NamedTuple):
    """A sampled packet: its first bytes, or the same built from the fields that an agent sent instead."""

    interface: int
    rate: int
    frame_bytes: int
    link: int
    """LINKTYPE of `header`: 1 Ethernet, 101 raw IP."""
    header: bytes


class Counters(NamedTuple):
    """Readings of one interface by their names in the MIBs; -1 stands for "the agent does not know"."""

    interface: int
    values: dict[str, int]


class Datagram(NamedTuple):
    """What a datagram says. `drops`: samples that the agent lost so far."""

    agent: str
    samples: list[Sample]
    counters: list[Counters]
    drops: int


def looks_right(data: bytes) -> bool:
    """Whether a datagram begins as sFlow version 5."""
    if len(data) < 28:
        return False
    version, family = struct.unpack_from(">II", data)
    if version != VERSION or family not in {1, 2}:
        return False
    at = 24 if family == 1 else 36
    if len(data) < at + 4:
        return False
    (count,) = struct.unpack_from(">I", data, at)
    return bool(count <= MAX_SAMPLES) and (count == 0 or len(data) >= at + 12)


def _pieces(data: bytes, at: int, count: int, counts: Counter[str]) -> Iterator[tuple[int, bytes]]:
    """Yield (type, body) of up to `count` structures that follow one another."""
    for _ in range(count):
        if at + 8 > len(data):
            counts["damaged datagrams"] += 1
            return
        kind, length = struct.unpack_from(">II", data, at)
        at += 8
        if length > len(data) - at:
            counts["damaged datagrams"] += 1
            return
        yield kind, data[at : at + length]
        at += length + (-length & 3)


def _ip_header(body: bytes, kind: int) -> tuple[int, bytes] | None:
    """Return (length, IP and transport header) of the fields of an IPv4 or IPv6 record."""
    width = 4 if kind == 3 else 16
    if len(body) < 24 + 2 * width:
        return None
    length, proto = struct.unpack_from(">II", body)
    src, dst = body[8 : 8 + width], body[8 + width : 8 + 2 * width]
    sport, dport, flags, tos = struct.unpack_from(">IIII", body, 8 + 2 * width)
    ports = struct.pack(">HH", sport & 0xFFFF, dport & 0xFFFF)
    rest = ports + (
        struct.pack(">IIBBHHH", 0, 0, 0x50, flags & 0xFF, 0, 0, 0) if proto == 6 else struct.pack(">HH", 8, 0)
    )
    size = min(max(length, 28), 0xFFFF)
    if kind == 3:
        head = struct.pack(">BBHHHBBH", 0x45, tos & 0xFF, size, 0, 0, 64, proto & 0xFF, 0) + src + dst
    else:
        first = 0x60000000 | (tos & 0xFF) << 20
        head = struct.pack(">IHBB", first, max(size - 40, 0), proto & 0xFF, 64) + src + dst
    return size, head + rest


def _sample(body: bytes, wide: bool, counts: Counter[str]) -> tuple[list[Sample], int]:
    """Read a flow sample; returns its packets and the agent's count of lost samples."""
    at = 44 if wide else 32
    if len(body) < at:
        counts["damaged datagrams"] += 1
        return [], 0
    if wide:
        rate, _, drops, _, interface = struct.unpack_from(">IIIII", body, 12)
    else:
        rate, _, drops, interface = struct.unpack_from(">IIII", body, 8)
    (count,) = struct.unpack_from(">I", body, at - 4)
    out = []
    for kind, record in _pieces(body, at, min(count, MAX_RECORDS), counts):
        if kind == 1 and len(record) >= 16:
            protocol, frame, _, size = struct.unpack_from(">IIII", record)
            link = {ETHERNET: 1, IPV4_HEADER: 101, IPV6_HEADER: 101}.get(protocol)
            if link is None:
                counts["sampled frames of another link type"] += 1
                continue
            header = record[16 : 16 + min(size, MAX_HEADER)]
            out.append(Sample(interface, max(rate, 1), frame, link, header))
        elif kind in {3, 4}:
            built = _ip_header(record, kind)
            if built and not any(s.header for s in out):
                out.append(Sample(interface, max(rate, 1), built[0] + 14, 101, built[1]))
    return out[:1], drops


def _counters(body: bytes, wide: bool, counts: Counter[str]) -> Counters | None:
    at = 16 if wide else 12
    if len(body) < at:
        counts["damaged datagrams"] += 1
        return None
    (source,) = struct.unpack_from(">I", body, 8 if wide else 4)
    (count,) = struct.unpack_from(">I", body, at - 4)
    values: dict[str, int] = {}
    for kind, record in _pieces(body, at, min(count, MAX_RECORDS), counts):
        layout = COUNTER_RECORDS.get(kind)
        if layout is None:
            counts["counter records of other kinds"] += 1
            continue
        place = 0
        for name, width in layout:
            value = int.from_bytes(record[place : place + width], "big")
            if place + width > len(record):
                break
            values[name] = -1 if value == NOT_KNOWN[width] else value
            place += width
    interface = values.pop("ifIndex", source if wide else source & 0xFFFFFF)
    return Counters(interface, values)


def decode(data: bytes, counts: Counter[str]) -> Datagram | None:
    """Return what a datagram says, None where it is not sFlow 5; what cannot be read is counted."""
    if not looks_right(data):
        counts["datagrams of another kind"] += 1
        return None
    (family,) = struct.unpack_from(">I", data, 4)
    if family == 1:
        agent, at = address_text(0, 0xFFFF00000000 | int.from_bytes(data[8:12], "big")), 24
    else:
        high, low = struct.unpack_from(">QQ", data, 8)
        agent, at = address_text(high, low), 36
    (count,) = struct.unpack_from(">I", data, at)
    samples: list[Sample] = []
    counters: list[Counters] = []
    drops = 0
    for kind, body in _pieces(data, at + 4, count, counts):
        if kind in {1, 3}:
            found, lost = _sample(body, kind == 3, counts)
            samples += found
            drops = max(drops, lost)
        elif kind in {2, 4}:
            read = _counters(body, kind == 4, counts)
            counters += [read] if read else []
        else:
            counts["samples of other kinds"] += 1
    return Datagram(agent, samples, counters, drops)
