"""How capture files begin, and which link types are read: data only, cheap to import.

Sources: draft-ietf-opsawg-pcap-04, draft-ietf-opsawg-pcapng-02, https://www.tcpdump.org/linktypes.html.
"""

from __future__ import annotations

from typing import NamedTuple


class PcapVariant(NamedTuple):
    """What a classic pcap magic number says: byte order, nanoseconds per fraction unit, record header."""

    order: str
    unit_ns: int
    record_bytes: int


PCAP_MAGICS: dict[bytes, PcapVariant] = {
    b"\xd4\xc3\xb2\xa1": PcapVariant("<", 1_000, 16),
    b"\xa1\xb2\xc3\xd4": PcapVariant(">", 1_000, 16),
    b"\x4d\x3c\xb2\xa1": PcapVariant("<", 1, 16),
    b"\xa1\xb2\x3c\x4d": PcapVariant(">", 1, 16),
    # "Modified" pcap of patched libpcaps: interface, protocol and packet type behind each record header.
    b"\x34\xcd\xb2\xa1": PcapVariant("<", 1_000, 24),
    b"\xa1\xb2\xcd\x34": PcapVariant(">", 1_000, 24),
}
PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"

MAX_CAPTURED = 262_144
"""Longest frame that libpcap and Wireshark accept (MAXIMUM_SNAPLEN): longer is damage, not data."""

LINK_TYPES: dict[int, str] = {
    0: "BSD loopback",
    1: "Ethernet",
    101: "raw IP",
    108: "OpenBSD loopback",
    113: "Linux cooked v1",
    197: "ERF",
    228: "raw IPv4",
    229: "raw IPv6",
    247: "InfiniBand",
    276: "Linux cooked v2",
}
"""The link types that are read. Others make a file, or the frames of an interface, unreadable."""

RAW_IP, ERF = 101, 197
_RAW_BY_SYSTEM = (12, 14)
"""DLT_RAW as some systems wrote it into files before LINKTYPE_RAW was agreed upon."""


def link_type(field: int) -> int:
    """Return the LINKTYPE value of a file's link type word; its upper half holds FCS bits."""
    value = field & 0xFFFF
    return RAW_IP if value in _RAW_BY_SYSTEM else value


def begins_capture(head: bytes) -> bool:
    """Return whether these first bytes (4 or more) are those of pcap or pcapng."""
    return head[:4] in PCAP_MAGICS or head[:4] == PCAPNG_MAGIC
