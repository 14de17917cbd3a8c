"""Tunnels and mirror encapsulations, down to the innermost IP header.

Sources: RFC 7348 (VXLAN), RFC 9135 and draft-ietf-nvo3-vxlan-gpe (its generic protocol extension),
RFC 8926 (GENEVE), RFC 2784 and 2890 (GRE), draft-foschiano-erspan (ERSPAN), RFC 2003 and 4213 (IP in IP).
"""

from __future__ import annotations

from skewscope.wire.headers import (
    CUT,
    ERSPAN,
    ETHERNET,
    FIRST_FRAGMENT,
    GENEVE,
    GRE,
    IP_ANY,
    IP_IN_IP,
    LRH,
    MAX_NESTED,
    NOT_IP,
    PROTO_GRH,
    PROTO_LRH,
    TOO_DEEP,
    VXLAN,
    leave_ip,
)
from skewscope.wire.ip import pass_ip
from skewscope.wire.jit import inlined
from skewscope.wire.layout import Row
from skewscope.wire.link import IPV4, IPV6, open_link, pass_tags
from skewscope.wire.load import Bytes, be16, be32, u8

ROCE_V1, BRIDGED = 0x8915, 0x6558
"""EtherTypes: InfiniBand over Ethernet, and Ethernet itself in GRE and GENEVE."""

ERSPAN_1_2, ERSPAN_3 = 0x88BE, 0x22EB
_MIRROR_CUT = 1 << 16
"""Added to the limit on the wire where a switch says that it truncated the mirrored frame: the IP length
inside counts, not what is left of the frame."""


@inlined
def walk(buf: Bytes, link: int, s: Row) -> None:
    """Walk the headers of a frame (state as `begin` leaves it) to the innermost transport header."""
    open_link(buf, link, s)
    for _ in range(MAX_NESTED + 1):
        if s["fault"] == 0:
            pass_tags(buf, s)
        if s["fault"]:
            return
        kind = s["kind"]
        if kind in (ROCE_V1, LRH):
            s["fault"] = NOT_IP
            s["proto"] = PROTO_LRH if kind == LRH else PROTO_GRH
            s["transport"] = s["pos"]
            s["stop"] = s["limit"]
            return
        if kind != IPV4 and kind != IPV6 and kind != IP_ANY:
            s["fault"] = NOT_IP
            return
        pass_ip(buf, s)
        if s["fault"] or not _enter(buf, s):
            break
    else:
        s["fault"] = TOO_DEEP
    if s["fault"] == 0 and s["part"]:
        s["fault"] = FIRST_FRAGMENT


@inlined
def _enter(buf: Bytes, s: Row) -> bool:
    """Enter the tunnel that the IP header carries, if it does; tells whether there was one."""
    proto, at = s["proto"], s["transport"]
    if proto == 17:
        return _udp(buf, at, s)
    if proto == 47:
        return _gre(buf, at, s)
    if proto == 4 or proto == 41:
        _inside(s, at, IPV4 if proto == 4 else IPV6, IP_IN_IP)
        return True
    return False


@inlined
def _inside(s: Row, at: int, kind: int, encap: int) -> None:
    """Go on at `at` with a header of that kind; of the outer headers only the bounds remain.

    So a row never mixes outer with inner: it has the innermost addresses or none.
    """
    s["end"] = min(s["end"], s["stop"])
    s["limit"] = min(s["limit"], s["stop"])
    s["encap"] |= encap
    s["pos"] = at
    s["kind"] = kind
    leave_ip(s)


@inlined
def _udp(buf: Bytes, at: int, s: Row) -> bool:
    """Enter VXLAN, VXLAN-GPE or GENEVE by its port, if the header behind UDP is one."""
    if at + 4 > s["end"]:
        return False
    port = be16(buf, at + 2)
    if port != 4789 and port != 8472 and port != 4790 and port != 6081:
        return False
    if at + 16 > min(s["stop"], s["limit"]):
        return False
    if at + 16 > s["end"]:
        _inside(s, at, 0, GENEVE if port == 6081 else VXLAN)
        s["fault"] = CUT
        return True
    first, last = be32(buf, at + 8), be32(buf, at + 12)
    if port == 6081:
        size = (first >> 24) * 4  # version 0, and the length of the options
        if first >> 30 or first & 0x3F0000 or last & 0xFF:
            return False
        return _bridged(s, at + 16 + size, first & 0xFFFF, GENEVE)
    if last & 0xFF:
        return False
    if port == 4790:
        following = first & 0xFF
        if first & ~0xFF != 0x0C000000 or following < 1 or following > 3:
            return False
        _inside(s, at + 16, IPV4 if following == 1 else IPV6 if following == 2 else ETHERNET, VXLAN)
        return True
    if first != 0x08000000:
        return False
    _inside(s, at + 16, ETHERNET, VXLAN)
    return True


@inlined
def _bridged(s: Row, at: int, protocol: int, encap: int) -> bool:
    """Enter a tunnel that names what it carries by EtherType, if that is read."""
    if protocol == BRIDGED:
        _inside(s, at, ETHERNET, encap)
        return True
    if protocol in (IPV4, IPV6, 0x8847, 0x8848):
        _inside(s, at, protocol, encap)
        return True
    return False


@inlined
def _gre(buf: Bytes, at: int, s: Row) -> bool:
    """Enter GRE version 0, and ERSPAN in it."""
    if at + 4 > s["end"]:
        _inside(s, at, 0, GRE)
        s["fault"] = CUT
        return True
    flags, protocol = be16(buf, at), be16(buf, at + 2)
    if flags & 0x4FFF:  # source routing, reserved bits, or version 1 (PPTP)
        return False
    numbered = (flags >> 12) & 1
    at += 4 + 4 * (flags >> 15) + 4 * ((flags >> 13) & 1) + 4 * numbered
    if protocol != ERSPAN_1_2 and protocol != ERSPAN_3:
        return _bridged(s, at, protocol, GRE)
    head = 12 if protocol == ERSPAN_3 else 8 * numbered  # without a sequence number: type I, no header
    limit = s["limit"]
    if at + head > s["end"]:
        _inside(s, at, 0, GRE | ERSPAN)
        s["fault"] = CUT
        return True
    cut = head and be16(buf, at + 2) & 0x400
    if protocol == ERSPAN_3 and u8(buf, at + 11) & 1:  # platform-specific subheader
        head += 8
    _inside(s, at + head, ETHERNET, GRE | ERSPAN)
    if cut:
        s["limit"] = limit + _MIRROR_CUT
    return True
