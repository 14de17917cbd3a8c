"""Frames and capture files from their parts: the inverse of the parsers, for the lab and for tests.

Pure: values in, bytes out. Checksums are right, since a one's-complement sum of 16-bit words is the
big-endian integer modulo 65535 (RFC 1071, section 2).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from skewscope.wire import nccl
from skewscope.wire.gloo import PREAMBLE_BYTES
from skewscope.wire.pcap import HEADER_BYTES

PCAP_NS_MAGIC = 0xA1B23C4D
LINK_ETHERNET = 1
ETHERNET_BYTES = 14
IPV4_BYTES = 20
UDP_BYTES = 8
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16

_RECORD = struct.Struct("<IIII")
_PREAMBLE = struct.Struct("<6Q")
_IPV4 = struct.Struct(">BBHHHBBH4s4s")
_IPV6 = struct.Struct(">IHBB16s16s")
_TCP = struct.Struct(">HHIIBBHHH")
_UDP = struct.Struct(">HHHH")
_HEAD = struct.Struct(">14sBBHHHBBH4s4sHHIIBBHHHIII")
"""Ethernet, IPv4 and TCP with NOP, NOP, timestamps: the frame of an established connection."""
_NOP_NOP_TS = 0x0101080A


def capture_header(snap_length: int, link_type: int = LINK_ETHERNET) -> bytes:
    """Return the header of a classic pcap file: little-endian, nanoseconds."""
    header = struct.pack("<IHHiIII", PCAP_NS_MAGIC, 2, 4, 0, 0, snap_length, link_type)
    assert len(header) == HEADER_BYTES
    return header


def capture(records: Iterable[tuple[int, bytes, int]], snap_length: int) -> bytes:
    """Return a capture file of (time in ns, frame, length on the wire) records, in that order."""
    parts = [capture_header(snap_length)]
    pack = _RECORD.pack
    for ts_ns, frame, size in records:
        kept = frame[:snap_length]
        parts.append(pack(ts_ns // 1_000_000_000, ts_ns % 1_000_000_000, len(kept), size))
        parts.append(kept)
    return b"".join(parts)


def word_sum(data: bytes) -> int:
    """Return the one's-complement sum of 16-bit words (an odd end is padded with a zero)."""
    value = int.from_bytes(data, "big")
    return (value << 8 if len(data) & 1 else value) % 65535


def checksum(total: int) -> int:
    """Return the checksum field for a sum of words."""
    return 65535 - total % 65535


def ethernet(src: bytes, dst: bytes, payload: bytes, kind: int = 0x0800, vlans: Sequence[int] = ()) -> bytes:
    """Return an Ethernet frame; src, dst: 6-byte addresses, `vlans`: 802.1Q tags, outermost first."""
    tags = b"".join(struct.pack(">HH", 0x8100, tag) for tag in vlans)
    return dst + src + tags + struct.pack(">H", kind) + payload


def ipv4(
    src: bytes, dst: bytes, proto: int, payload: bytes, ident: int = 0, tos: int = 0, ttl: int = 64
) -> bytes:
    """Return an IPv4 packet without options; src, dst: 4-byte addresses."""
    total = IPV4_BYTES + len(payload)
    head = _IPV4.pack(0x45, tos, total, ident, 0x4000, ttl, proto, 0, src, dst)
    return head[:10] + struct.pack(">H", checksum(word_sum(head))) + head[12:] + payload


def ipv6(src: bytes, dst: bytes, proto: int, payload: bytes, traffic_class: int = 0) -> bytes:
    """Return an IPv6 packet without extension headers; src, dst: 16-byte addresses."""
    return _IPV6.pack(6 << 28 | traffic_class << 20, len(payload), proto, 64, src, dst) + payload


def tcp_options(
    *,
    mss: int = 0,
    wscale: int = -1,
    timestamps: tuple[int, int] | None = None,
    sack_permitted: bool = False,
    sacks: Sequence[tuple[int, int]] = (),
) -> bytes:
    """Return TCP options, padded with NOPs to a multiple of four bytes (RFC 9293, 7323, 2018)."""
    out = b""
    if mss:
        out += struct.pack(">BBH", 2, 4, mss)
    if sack_permitted:
        out += b"\x04\x02"
    if timestamps is not None:
        out += b"\x01\x01" * (not out) + struct.pack(">BBII", 8, 10, *(t & 0xFFFFFFFF for t in timestamps))
    if wscale >= 0:
        out += struct.pack(">BBBB", 1, 3, 3, wscale)
    if sacks:
        out += struct.pack(">BBBB", 1, 1, 5, 2 + 8 * len(sacks))
        out += b"".join(struct.pack(">II", lo & 0xFFFFFFFF, hi & 0xFFFFFFFF) for lo, hi in sacks)
    return out + b"\x01" * (-len(out) % 4)


def tcp(
    src: bytes,
    dst: bytes,
    sport: int,
    dport: int,
    seq: int,
    ack: int,
    flags: int,
    window: int,
    payload: bytes = b"",
    options: bytes = b"",
) -> bytes:
    """Return a TCP segment; src, dst: the packet's IP addresses, for the checksum."""
    size = 20 + len(options)
    head = _TCP.pack(sport, dport, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, size << 2, flags, window, 0, 0)
    total = word_sum(src + dst) + 6 + size + len(payload) + word_sum(head + options) + word_sum(payload)
    return head[:16] + struct.pack(">H", checksum(total)) + head[18:] + options + payload


def udp(src: bytes, dst: bytes, sport: int, dport: int, payload: bytes) -> bytes:
    """Return a UDP datagram."""
    size = UDP_BYTES + len(payload)
    head = _UDP.pack(sport, dport, size, 0)
    total = word_sum(src + dst) + 17 + size + word_sum(head) + word_sum(payload)
    return _UDP.pack(sport, dport, size, checksum(total) or 65535) + payload


def mpls(labels: Sequence[int], payload: bytes) -> bytes:
    """Return a label stack, outermost first, before a payload (RFC 3032)."""
    last = len(labels) - 1
    return (
        b"".join(struct.pack(">I", n << 12 | (k == last) << 8 | 64) for k, n in enumerate(labels)) + payload
    )


def vxlan(vni: int, frame: bytes) -> bytes:
    """Return the UDP payload (port 4789) that carries a frame (RFC 7348)."""
    return struct.pack(">II", 8 << 24, vni << 8) + frame


def geneve(vni: int, payload: bytes, kind: int = 0x6558, options: bytes = b"") -> bytes:
    """Return the UDP payload (port 6081) that carries a frame or packet; options: whole words (RFC 8926)."""
    return struct.pack(">BBHI", len(options) // 4, 0, kind, vni << 8) + options + payload


def gre(
    kind: int, payload: bytes, *, checksummed: bool = False, key: int | None = None, number: int | None = None
) -> bytes:
    """Return a GRE packet (RFC 2784, 2890); a checksum field is left 0, which receivers need not check."""
    flags = checksummed << 15 | (key is not None) << 13 | (number is not None) << 12
    words = [0] * checksummed + [n for n in (key, number) if n is not None]
    return struct.pack(">HH", flags, kind) + b"".join(struct.pack(">I", n) for n in words) + payload


def erspan(version: int, frame: bytes, *, number: int = 0, truncated: bool = False) -> bytes:
    """Return the GRE packet of a mirrored frame: ERSPAN type I, II or III by `version` 1 to 3."""
    if version == 1:
        return gre(0x88BE, frame)
    first = struct.pack(">HH", (version - 1) << 12, truncated << 10 | 5)
    if version == 2:
        return gre(0x88BE, first + bytes(4) + frame, number=number)
    return gre(0x22EB, first + bytes(8) + frame, number=number)


class Lane:
    """One direction of a TCP connection over IPv4: everything constant in its headers, prepared once."""

    __slots__ = ("_dst", "_ether", "_ip_sum", "_ports", "_src", "_tcp_sum")

    def __init__(
        self,
        mac: bytes,
        peer_mac: bytes,
        src: bytes,
        dst: bytes,
        sport: int,
        dport: int,
        *,
        kind: int = 0x0800,
    ) -> None:
        self._ether = peer_mac + mac + struct.pack(">H", kind)
        self._src, self._dst, self._ports = src, dst, (sport, dport)
        addresses = word_sum(src + dst)
        self._ip_sum = 0x4500 + 0x4000 + 0x4006 + addresses
        self._tcp_sum = addresses + 6 + sport + dport

    def frame(
        self, ident: int, seq: int, ack: int, flags: int, window: int, tsval: int, tsecr: int, data: bytes
    ) -> bytes:
        """Return the frame of one segment with timestamps; integers are cut to their fields."""
        size = len(data)
        seq, ack, tsval, tsecr = seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, tsval & 0xFFFFFFFF, tsecr & 0xFFFFFFFF
        total = (
            self._tcp_sum
            + 32
            + size
            + seq
            + ack
            + (0x8000 | flags)
            + window
            + 0x0101
            + 0x080A
            + tsval
            + tsecr
        )
        if size:
            total += word_sum(data)
        return (
            _HEAD.pack(
                self._ether, 0x45, 0, 52 + size, ident, 0x4000, 64, 6,
                65535 - (self._ip_sum + 52 + size + ident) % 65535, self._src, self._dst, *self._ports,
                seq, ack, 0x80, flags, window, 65535 - total % 65535, 0, _NOP_NOP_TS, tsval, tsecr,
            )
            + data
        )  # fmt: skip

    def frame_with(
        self, ident: int, seq: int, ack: int, flags: int, window: int, options: bytes, data: bytes
    ) -> bytes:
        """Return the frame of one segment with the given options."""
        segment = tcp(self._src, self._dst, *self._ports, seq, ack, flags, window, data, options)
        return self._ether + ipv4(self._src, self._dst, 6, segment, ident)


def gloo_preamble(nbytes: int, opcode: int, prefix: int, tag: int, length: int, delta: int = 0) -> bytes:
    """Return a Gloo preamble; `nbytes` is the payload that follows it, `length` the buffer's part."""
    return _PREAMBLE.pack(PREAMBLE_BYTES + nbytes, opcode, prefix << 56 | tag << 24 | delta, 0, length, 0)


def nccl_hello(index: int = 0, kind: int = nccl.NET_SOCKET) -> bytes:
    """Return the greeting of a socket of NCCL."""
    return struct.pack("<QIB", nccl.MAGIC, kind, index)


def nccl_writes(body: bytes) -> list[bytes]:
    """Return what NCCL writes for one message on its only socket: size and data, in one piece if short."""
    size = struct.pack("<I", len(body))
    return [size + body] if len(body) <= nccl.INLINE_BYTES else [size, body]


def http_chunk(body: bytes) -> bytes:
    """Return one chunk of a chunked body (RFC 9112, section 7.1); an empty body makes the last one."""
    return f"{len(body):x}\r\n".encode() + body + b"\r\n"


def http2_frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    """Return an HTTP/2 frame (RFC 9113, section 4.1)."""
    return struct.pack(">IBI", len(payload) << 8 | kind, flags, stream) + payload


def grpc_message(body: bytes) -> bytes:
    """Return a length-prefixed gRPC message, uncompressed."""
    return struct.pack(">BI", 0, len(body)) + body
