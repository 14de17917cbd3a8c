"""Link layers: from the start of a record to the EtherType of what it carries.

Sources: the LINKTYPE_ list (https://www.tcpdump.org/linktypes.html), IEEE 802.3, 802.1Q, 802.2 with
RFC 1042 (SNAP), RFC 3032 (MPLS), the Endace ERF types as in libpcap and Wireshark.
"""

from __future__ import annotations

from skewscope.wire.headers import (
    CUT,
    ETHERNET,
    IP_ANY,
    LRH,
    MAX_NESTED,
    MPLS,
    NO_LINK,
    NOT_IP,
    QINQ,
    TOO_DEEP,
    VLAN,
)
from skewscope.wire.jit import inlined
from skewscope.wire.layout import Row
from skewscope.wire.load import Bytes, be16, be32, u8

LINK_NULL, LINK_ETHERNET, LINK_LOOP, LINK_COOKED, LINK_COOKED2 = 0, 1, 108, 113, 276
LINK_ERF, LINK_INFINIBAND = 197, 247
LINK_RAW = (12, 14, 101, 228, 229)
"""Link types without a link header: BSD's two numbers for raw IP, LINKTYPE_RAW, _IPV4, _IPV6."""

IPV4, IPV6, SNAP_LIMIT = 0x0800, 0x86DD, 1536
"""EtherTypes; below SNAP_LIMIT the field is an IEEE 802.3 length."""

_OUTGOING = 4  # PACKET_OUTGOING of Linux


@inlined
def open_link(buf: Bytes, link: int, s: Row) -> None:
    """Pass the link header of a record: sets KIND and POS, or FAULT."""
    if link == 1:
        s["kind"] = ETHERNET
    elif link == 101 or link == 228 or link == 229 or link == 12 or link == 14:
        s["kind"] = IP_ANY
    elif link == 0 or link == 108:
        _family(buf, s)
    elif link == 113:
        _cooked(buf, s, 16, 14, 1)
    elif link == 276:
        _cooked(buf, s, 20, 0, 10)
    elif link == 197:
        _erf(buf, s)
    elif link == 247:
        s["kind"] = LRH
    else:
        s["fault"] = NO_LINK


@inlined
def _family(buf: Bytes, s: Row) -> None:
    """Pass the address family of a BSD loopback frame, in the byte order of the host or the network."""
    if s["pos"] + 4 > s["end"]:
        s["fault"] = CUT
        return
    word = be32(buf, s["pos"])
    if word > 0xFFFF:  # little-endian: families are small numbers
        word = ((word & 0xFF) << 24) | ((word & 0xFF00) << 8) | ((word >> 8) & 0xFF00) | (word >> 24)
    s["pos"] += 4
    if word == 2:
        s["kind"] = IPV4
    elif word == 10 or word == 24 or word == 28 or word == 30:  # AF_INET6 of Linux, NetBSD, FreeBSD, macOS
        s["kind"] = IPV6
    else:
        s["fault"] = NOT_IP


@inlined
def _cooked(buf: Bytes, s: Row, size: int, kind_at: int, type_at: int) -> None:
    """Pass a Linux cooked header, whose packet type is the byte at `type_at`."""
    if s["pos"] + size > s["end"]:
        s["fault"] = CUT
        return
    s["direction"] = 2 if u8(buf, s["pos"] + type_at) == _OUTGOING else 1
    s["kind"] = be16(buf, s["pos"] + kind_at)
    s["pos"] += size


@inlined
def _erf(buf: Bytes, s: Row) -> None:
    """Pass an ERF record header with its extension headers; it has a wire length of its own."""
    pos, end = s["pos"], s["end"]
    if pos + 16 > end:
        s["fault"] = CUT
        return
    kind = u8(buf, pos + 8)
    size = be16(buf, pos + 14)
    pos += 16
    more = kind & 0x80
    for _ in range(MAX_NESTED):
        if more == 0:
            break
        if pos + 8 > end:
            s["fault"] = CUT
            return
        more = u8(buf, pos) & 0x80
        pos += 8
    if more:
        s["fault"] = TOO_DEEP
        return
    kind &= 0x7F
    if kind == 2 or kind == 11 or kind == 16 or kind == 20:  # Ethernet, plain, coloured, two with a hash
        s["kind"] = ETHERNET
        pos += 2  # a byte of offset and one of padding
    elif kind == 21:
        s["kind"] = LRH
    elif kind == 22:
        s["kind"] = IPV4
    elif kind == 23:
        s["kind"] = IPV6
    else:
        s["fault"] = NO_LINK
    s["pos"] = pos
    s["wire"] = size
    s["limit"] = pos + size
    s["end"] = min(end, pos + size)  # records are padded to a multiple of eight bytes


@inlined
def pass_ethernet(buf: Bytes, s: Row) -> None:
    """Pass a MAC header: sets KIND to its EtherType."""
    if s["pos"] + 14 > s["end"]:
        s["fault"] = CUT
        return
    s["kind"] = be16(buf, s["pos"] + 12)
    s["pos"] += 14


@inlined
def _snap(buf: Bytes, s: Row) -> None:
    """Pass an IEEE 802.2 header where KIND is a length: only SNAP carries IP."""
    pos = s["pos"]
    if pos + 8 > s["end"]:
        s["fault"] = CUT if pos + 8 <= s["limit"] else NOT_IP
    elif be32(buf, pos) != 0xAAAA0300 or be16(buf, pos + 4) != 0:
        s["fault"] = NOT_IP
    else:
        s["kind"] = be16(buf, pos + 6)
        s["pos"] = pos + 8


@inlined
def _tags(buf: Bytes, s: Row) -> None:
    """Pass 802.1Q and 802.1ad tags."""
    for k in range(MAX_NESTED + 1):
        kind = s["kind"]
        service = kind == 0x88A8 or kind == 0x9100
        if kind != 0x8100 and not service:
            return
        if k == MAX_NESTED:
            s["fault"] = TOO_DEEP
            return
        if s["pos"] + 4 > s["end"]:
            s["fault"] = CUT
            return
        s["encap"] |= QINQ if service or k > 0 else VLAN
        s["kind"] = be16(buf, s["pos"] + 2)
        s["pos"] += 4


@inlined
def _labels(buf: Bytes, s: Row) -> None:
    """Pass an MPLS label stack to its bottom; what follows is IP by its first four bits."""
    s["encap"] |= MPLS
    for _ in range(MAX_NESTED):
        if s["pos"] + 4 > s["end"]:
            s["fault"] = CUT
            return
        bottom = be32(buf, s["pos"]) & 0x100
        s["pos"] += 4
        if bottom:
            s["kind"] = IP_ANY
            return
    s["fault"] = TOO_DEEP


@inlined
def pass_tags(buf: Bytes, s: Row) -> None:
    """Pass all that may stand between an EtherType and IP."""
    if s["kind"] == ETHERNET:
        pass_ethernet(buf, s)
    if s["fault"] == 0:
        _tags(buf, s)
    if s["fault"] == 0 and s["kind"] < SNAP_LIMIT:
        _snap(buf, s)
        if s["fault"] == 0:
            _tags(buf, s)
    if s["fault"] == 0 and (s["kind"] == 0x8847 or s["kind"] == 0x8848):
        _labels(buf, s)
