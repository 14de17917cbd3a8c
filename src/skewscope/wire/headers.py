"""The state in which the headers of one frame are walked, and what a walk can end with.

The state is one record, used again for every frame: `link`, `ip` and `tunnels` read and write it,
`packets` turns it into a row.
"""

from __future__ import annotations

import numpy as np

from skewscope.wire.jit import inlined
from skewscope.wire.layout import Row

FAULTS = {
    0: "parsed",
    1: "frame cut before its headers end",
    2: "lengths contradict",
    3: "not IP",
    4: "fragment",
    5: "first fragment",
    6: "more nested headers than are read",
    7: "link type not read",
}
"""Reason codes of the `fault` column. Such rows are kept and counted by size and time. A first fragment
(5) has its ports, flags and the payload of this fragment, and is not followed as part of a stream: the
rest comes in fragments without ports (4), which would look like a loss."""

CUT, CONTRADICT, NOT_IP, FRAGMENT, FIRST_FRAGMENT, TOO_DEEP, NO_LINK = range(1, 8)

ENCAPS = {1: "VLAN", 2: "QinQ", 4: "VXLAN", 8: "GENEVE", 16: "GRE", 32: "ERSPAN", 64: "IP in IP", 128: "MPLS"}
"""Bits of the `encap` column; each may have been passed more than once. QinQ: a service tag or a second
one. An ERSPAN mirror has GRE as well."""

VLAN, QINQ, VXLAN, GENEVE, GRE, ERSPAN, IP_IN_IP, MPLS = (1 << k for k in range(8))

PROTO_LRH, PROTO_GRH = 253, 254
"""`proto` of InfiniBand packets outside IP, whose fault is NOT_IP: at `payload_at` stands the local route
header (native InfiniBand) or the global route header (RoCEv1, EtherType 0x8915)."""

MAX_NESTED = 8
"""Tags, labels, extension headers and tunnels that are passed, of each kind in a row."""

STATE = np.dtype(
    [
        ("fault", "i8"),
        ("pos", "i8"),  # the next header, which is of this kind: an EtherType or one of those below
        ("kind", "i8"),
        ("end", "i8"),  # of the captured bytes
        ("limit", "i8"),  # of the bytes on the wire
        ("encap", "i8"),
        ("direction", "i8"),
        ("wire", "i8"),  # length of the frame
        ("ip", "i8"),  # the last IP header; -1: none yet
        ("proto", "i8"),
        ("transport", "i8"),  # what it carries; -1: not there
        ("stop", "i8"),  # of its payload
        ("tos", "i8"),
        ("ident", "i8"),
        ("part", "i8"),  # 1: a first fragment
        ("tsval", "i8"),
        ("tsecr", "i8"),
        ("sack_lo", "i8"),
        ("sack_hi", "i8"),
        ("mss", "i8"),
        ("wscale", "i8"),
    ]
)
"""What is known of a frame while its headers are walked; places are offsets into the batch's buffer.

A record and a plain address are what inlined kernels can be handed for nothing; an array costs two atomic
counts of its references a call."""

ETHERNET, IP_ANY, LRH = 0x10000, 0x10001, 0x10002
"""Values of KIND that are no EtherType: an Ethernet frame, IP of either version, InfiniBand."""


@inlined
def begin(s: Row, pos: int, end: int, wire: int) -> None:
    """Set the state to the start of a frame whose captured bytes are [pos, end)."""
    s["fault"] = 0
    s["pos"] = pos
    s["end"] = end
    s["limit"] = pos + wire
    s["encap"] = 0
    s["direction"] = 0
    s["wire"] = wire
    s["part"] = 0
    leave_ip(s)


@inlined
def leave_ip(s: Row) -> None:
    """Forget the IP header, before another one or where there is none."""
    s["ip"] = -1
    s["proto"] = 0
    s["transport"] = -1
    s["stop"] = 0
    s["tos"] = 0
    s["ident"] = 0
