"""Records of any link type to the `packets` table, for the tests of the parser."""

import itertools

import numpy as np

from skewscope.core.directory import Directory
from skewscope.wire import build
from skewscope.wire.packets import PacketParser

MAC_A, MAC_B = b"\x02SYN\x00\x01", b"\x02SYN\x00\x02"
A, B, C, D = (bytes([10, 1, 2, n]) for n in (3, 4, 5, 6))
A6, B6 = bytes.fromhex("20010db8" + "00" * 11 + "01"), bytes.fromhex("20010db8" + "00" * 11 + "02")
CUT, CONTRADICT, NOT_IP, FRAGMENT, FIRST, TOO_DEEP, NO_LINK = range(1, 8)
ETHERNET = 1


def parse(records, links=ETHERNET, *, parser=None, kept=None, wire=None, cuts=()):
    """Parse records (bytes); returns (columns over all batches that the cuts make, Directory)."""
    parser = parser or PacketParser(Directory())
    kept = [r if kept is None else r[:kept] for r in records]
    wire = [len(r) for r in records] if wire is None else wire
    edges = sorted({0, len(records), *(c % (len(records) + 1) for c in cuts)})
    tables = []
    for lo, hi in itertools.pairwise(edges):
        sizes = np.array([len(r) for r in kept[lo:hi]], dtype=np.int64)
        buf = np.frombuffer(b"".join(kept[lo:hi]), np.uint8)
        at = np.cumsum(sizes) - sizes
        ts = np.arange(lo, hi, dtype=np.int64)
        link = links if isinstance(links, int) else np.array(links[lo:hi], np.uint16)
        length = np.array(wire[lo:hi], dtype=np.int64)
        tables.append(parser.parse(buf, ts, at, sizes, length, 0, lo + 1, link).packets)
    names = tables[0].columns if tables else {}
    return {n: np.concatenate([t[n] for t in tables]) for n in names}, parser.directory


def row(record, link=ETHERNET, **more):
    """Parse one record; returns its row, with addresses as text."""
    table, names = parse([record], link, **more)
    got = {n: int(v[0]) for n, v in table.items()}
    return got | {n: names.addresses[got[n]] for n in ("src", "dst")}


def segment(data=b"abc", src=A, dst=B, options=b"", ports=(40000, 8000)):
    """Return a TCP segment."""
    return build.tcp(src, dst, *ports, 7, 9, build.ACK, 512, data, options)


def packet4(src=A, dst=B, data=b"abc", ports=(40000, 8000)):
    """Return an IPv4 packet with that segment."""
    return build.ipv4(src, dst, 6, segment(data, src, dst, ports=ports), ident=77, tos=0xB9)


def packet6(src=A6, dst=B6, data=b"abc"):
    """Return an IPv6 packet with that segment."""
    return build.ipv6(src, dst, 6, segment(data, src, dst), 0xB9)


def ether(payload, kind=0x0800, vlans=()):
    """Return an Ethernet frame."""
    return build.ethernet(MAC_A, MAC_B, payload, kind, vlans)


def outer(payload, proto=17, port=4789):
    """Return a frame between C and D that carries an IP payload, or a UDP payload to that port."""
    inside = build.udp(C, D, 50000, port, payload) if proto == 17 else payload
    return ether(build.ipv4(C, D, proto, inside))


ADDRESSES4, ADDRESSES6 = ("10.1.2.3", "10.1.2.4"), ("2001:db8::1", "2001:db8::2")


def is_read(got, addresses=ADDRESSES4):
    """Return whether the row has everything of `segment`."""
    what = (
        got["src"],
        got["dst"],
        got["sport"],
        got["dport"],
        got["seq"],
        got["payload_bytes"],
        got["fault"],
    )
    return what == (*addresses, 40000, 8000, 7, 3, 0) and (got["dscp"], got["ecn"]) == (46, 1)
