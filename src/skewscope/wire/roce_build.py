"""RoCE frames from their parts: the inverse of wire/roce.py, for the lab and for tests.

Pure: values in, bytes out. Headers as in the InfiniBand Architecture Specification, volume 1, chapter 9
and annex A17. The invariant CRC is made with zlib, apart from the kernel in wire/icrc.py that checks it.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass

from skewscope.wire import build
from skewscope.wire.roce import NEXT_IS_BTH, ROCE_PORT
from skewscope.wire.roce_codes import CNP, RNR_MS

ROCE_V1_ETHERTYPE = 0x8915
NO_CREDITS = 0x1F
"""ACK syndrome of a receiver without end-to-end flow control: what adapters send."""
SEQUENCE_ERROR = 0x60
ECT0, CE = 2, 3
CNP_DSCP = 48
CNP_PERIOD_NS = 50_000

_BTH = struct.Struct(">BBHII")
_RETH = struct.Struct(">QII")
_ANY_ROUTE = b"\xff" * 8


def bth(
    opcode: int,
    qp: int,
    psn: int,
    *,
    ack: bool = False,
    solicited: bool = False,
    pad: int = 0,
    pkey: int = 0xFFFF,
    fecn: bool = False,
    becn: bool = False,
) -> bytes:
    """Return a base transport header; qp and psn are cut to 24 bits."""
    flags = solicited << 7 | 1 << 6 | (pad & 3) << 4
    marks = fecn << 31 | becn << 30
    return _BTH.pack(opcode, flags, pkey, marks | qp & 0xFFFFFF, ack << 31 | psn & 0xFFFFFF)


def reth(address: int, rkey: int, nbytes: int) -> bytes:
    """Return an RDMA extended transport header."""
    return _RETH.pack(address, rkey, nbytes)


def aeth(syndrome: int, msn: int) -> bytes:
    """Return an acknowledge extended transport header."""
    return struct.pack(">I", syndrome << 24 | msn & 0xFFFFFF)


def deth(qkey: int, src_qp: int) -> bytes:
    """Return a datagram extended transport header."""
    return struct.pack(">II", qkey, src_qp & 0xFFFFFF)


def immediate(value: int) -> bytes:
    """Return immediate data."""
    return struct.pack(">I", value)


def rnr_syndrome(wait_ms: float) -> int:
    """Return the syndrome of an RNR NAK with the shortest timer of at least `wait_ms`."""
    code = min((ms, code) for code, ms in enumerate(RNR_MS) if ms >= wait_ms)[1]
    return 0x20 | code


def padding(payload_bytes: int) -> int:
    """Return the pad count that a payload needs."""
    return -payload_bytes % 4


def icrc(route: bytes, rest: bytes) -> bytes:
    """Return the invariant CRC of a packet; `route`: the masked headers before the BTH, `rest`: from there.

    Only the fifth byte of the BTH is masked here: it is the same in all kinds of packets.
    """
    crc = zlib.crc32(rest[5:], zlib.crc32(route + rest[:4] + b"\xff"))
    return struct.pack("<I", crc)


def masked_ip(packet: bytes) -> bytes:
    """Return the IPv4 or IPv6 header (without options) and the UDP header as the invariant CRC sees them."""
    head = bytearray(packet[:28] if packet[0] >> 4 == 4 else packet[:48])
    if packet[0] >> 4 == 4:
        head[1] = head[8] = head[10] = head[11] = 0xFF
    else:
        head[0] |= 0x0F
        head[1] = head[2] = head[3] = head[7] = 0xFF
    head[-2] = head[-1] = 0xFF
    return _ANY_ROUTE + bytes(head)


@dataclass(frozen=True)
class Path:
    """One direction between two queue pairs: everything in a RoCEv2 packet before its BTH.

    src, dst: 4-byte or 16-byte IP addresses; sport: the entropy of the flow.
    """

    mac: bytes
    peer_mac: bytes
    src: bytes
    dst: bytes
    sport: int
    dscp: int = 0
    vlans: tuple[int, ...] = ()

    def overhead(self) -> int:
        """Return the bytes of a frame around the BTH and what follows it, ICRC included."""
        return 14 + 4 * len(self.vlans) + (20 if len(self.src) == 4 else 40) + build.UDP_BYTES + 4

    def frame(self, transport: bytes, ident: int = 0, ecn: int = ECT0) -> bytes:
        """Return the frame of a packet from its BTH to its padding."""
        # The UDP checksum is 0: annex A17 wants that, and adapters do it over IPv6 as well (RFC 6936).
        size = build.UDP_BYTES + len(transport) + 4
        udp = struct.pack(">HHHH", self.sport, ROCE_PORT, size, 0) + transport + b"\0\0\0\0"
        tos = self.dscp << 2 | ecn
        if len(self.src) == 4:
            packet, kind = build.ipv4(self.src, self.dst, 17, udp, ident, tos), 0x0800
        else:
            packet, kind = build.ipv6(self.src, self.dst, 17, udp, tos), 0x86DD
        packet = packet[:-4] + icrc(masked_ip(packet), transport)
        return build.ethernet(self.mac, self.peer_mac, packet, kind, self.vlans)

    def notification(self, qp: int, ident: int = 0) -> bytes:
        """Return a congestion notification packet to a queue pair."""
        path = Path(self.mac, self.peer_mac, self.src, self.dst, self.sport, CNP_DSCP, self.vlans)
        return path.frame(bth(CNP, qp, 0, becn=True) + b"\0" * 16, ident)


def global_route(src: bytes, dst: bytes, size: int, traffic_class: int = 0, hop_limit: int = 64) -> bytes:
    """Return a GRH; src, dst: 16-byte GIDs, size: bytes behind it, ICRC included."""
    return struct.pack(">IHBB", 6 << 28 | traffic_class << 20, size, NEXT_IS_BTH, hop_limit) + src + dst


def masked_global_route(grh: bytes) -> bytes:
    """Return a GRH as the invariant CRC sees it."""
    return bytes([grh[0] | 0x0F, 0xFF, 0xFF, 0xFF]) + grh[4:7] + b"\xff" + grh[8:]


def frame_v1(mac: bytes, peer_mac: bytes, src: bytes, dst: bytes, transport: bytes) -> bytes:
    """Return a RoCEv1 frame (EtherType 0x8915); src, dst: 16-byte GIDs."""
    grh = global_route(src, dst, len(transport) + 4)
    crc = icrc(_ANY_ROUTE + masked_global_route(grh), transport)
    return build.ethernet(mac, peer_mac, grh + transport + crc, ROCE_V1_ETHERTYPE)


def native(
    src: int,
    dst: int,
    transport: bytes,
    *,
    lane: int = 0,
    level: int = 0,
    gids: tuple[bytes, bytes] | None = None,
) -> bytes:
    """Return a native InfiniBand packet from its LRH to its ICRC (no variant CRC); src, dst: LIDs."""
    grh = global_route(*gids, len(transport) + 4) if gids else b""
    words = (8 + len(grh) + len(transport) + 4) // 4
    lrh = struct.pack(">BBHHH", lane << 4, level << 4 | (3 if gids else 2), dst, words, src)
    masked = _ANY_ROUTE + masked_global_route(grh) if gids else bytes([lrh[0] | 0xF0]) + lrh[1:]
    return lrh + grh + transport + icrc(masked, transport)
