"""IPv4 and IPv6 headers, extension headers and fragments.

Sources: RFC 791, RFC 8200, RFC 6946 (atomic fragments), RFC 4302 (authentication header).
"""

from __future__ import annotations

from skewscope.wire.headers import (
    CONTRADICT,
    CUT,
    FRAGMENT,
    MAX_NESTED,
    NOT_IP,
    TOO_DEEP,
)
from skewscope.wire.jit import inlined
from skewscope.wire.layout import Row
from skewscope.wire.load import Bytes, be16, u8

ENDLESS = 0x7FFFFFFF
"""Length of a packet whose length field is 0: segmentation offload on the capturing host, or a jumbogram.
The frame's length counts then."""

AUTHENTICATION = 51


@inlined
def pass_ip(buf: Bytes, s: Row) -> None:
    """Parse the IP header at POS and its extension headers; sets IP and what hangs on it, or FAULT."""
    pos = s["pos"]
    if pos + 20 > s["end"]:
        s["fault"] = CUT
        return
    version = u8(buf, pos) >> 4
    if version == 4:
        _ipv4(buf, pos, s)
    elif version == 6:
        _ipv6(buf, pos, s)
    else:
        s["fault"] = NOT_IP


@inlined
def _ipv4(buf: Bytes, pos: int, s: Row) -> None:
    head = (u8(buf, pos) & 15) * 4
    total = be16(buf, pos + 2)
    if total == 0:
        total = ENDLESS
    if head < 20 or total < head:
        s["fault"] = CONTRADICT
        return
    s["ip"] = pos
    s["tos"] = u8(buf, pos + 1)
    s["ident"] = be16(buf, pos + 4)
    s["proto"] = u8(buf, pos + 9)
    s["stop"] = pos + total
    where = be16(buf, pos + 6)
    if where & 0x1FFF:
        s["fault"] = FRAGMENT
        return
    if where & 0x2000:
        s["part"] = 1
    _chain(buf, pos + head, s["proto"], False, s)


@inlined
def _ipv6(buf: Bytes, pos: int, s: Row) -> None:
    if pos + 40 > s["end"]:
        s["fault"] = CUT
        return
    size = be16(buf, pos + 4)
    s["ip"] = pos
    s["tos"] = (be16(buf, pos) >> 4) & 0xFF
    s["stop"] = pos + 40 + (size if size else ENDLESS)
    _chain(buf, pos + 40, u8(buf, pos + 6), True, s)


@inlined
def _chain(buf: Bytes, pos: int, kind: int, six: bool, s: Row) -> None:
    """Pass extension headers: sets PROTO and TRANSPORT. IPv4 has only the authentication header."""
    for _ in range(MAX_NESTED + 1):
        s["proto"] = kind
        options = six and (kind == 0 or kind == 43 or kind == 60)
        if not options and kind != AUTHENTICATION and not (six and kind == 44):
            s["transport"] = pos
            return
        if pos + 8 > s["end"]:
            s["fault"] = CUT
            return
        following = u8(buf, pos)
        if kind == AUTHENTICATION:
            pos += (u8(buf, pos + 1) + 2) * 4
        elif options:
            pos += (u8(buf, pos + 1) + 1) * 8
        else:
            where = be16(buf, pos + 2)
            if where >> 3:
                s["proto"] = following
                s["fault"] = FRAGMENT
                return
            if where & 1:
                s["part"] = 1
            pos += 8
        kind = following
    s["fault"] = TOO_DEEP
