"""Frames against dpkt, an independent parser, and random bytes against nothing but survival."""

import itertools

import dpkt
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.core.directory import Directory
from skewscope.wire import build
from skewscope.wire.packets import FAULTS, PacketParser

MAC_A, MAC_B = b"\x02SYN\x00\x01", b"\x02SYN\x00\x02"
u16, u32 = st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1)


def parse(frames, cuts=()):
    """Parse frames in the pieces that the cuts make; returns columns over all of them."""
    parser = PacketParser(Directory())
    edges = sorted({0, len(frames), *(c % (len(frames) + 1) for c in cuts)})
    tables = []
    for lo, hi in itertools.pairwise(edges):
        sizes = np.array([len(f) for f in frames[lo:hi]], dtype=np.int64)
        buf = np.frombuffer(b"".join(frames[lo:hi]), np.uint8)
        at = np.cumsum(sizes) - sizes
        tables.append(
            parser.parse(buf, np.arange(lo, hi, dtype=np.int64), at, sizes, sizes, 0, lo + 1).packets
        )
    names = tables[0].columns if tables else {}
    return {n: np.concatenate([t[n] for t in tables]) for n in names}, parser.directory


@st.composite
def frames(draw):
    """Draw a frame: TCP or UDP over IPv4 or IPv6, with tags and options."""
    six = draw(st.booleans())
    size = 16 if six else 4
    src, dst = draw(st.binary(min_size=size, max_size=size)), draw(st.binary(min_size=size, max_size=size))
    data = draw(st.binary(max_size=60))
    sport, dport = draw(u16), draw(u16)
    if draw(st.booleans()):
        proto, payload = 17, build.udp(src, dst, sport, dport, data)
    else:
        options = build.tcp_options(
            mss=draw(st.sampled_from([0, 1460])),
            wscale=draw(st.integers(-1, 14)),
            timestamps=draw(st.none() | st.tuples(u32, u32)),
            sacks=draw(st.lists(st.tuples(u32, u32), max_size=2)),
        )
        flags, window = draw(st.integers(0, 255)), draw(u16)
        proto = 6
        payload = build.tcp(src, dst, sport, dport, draw(u32), draw(u32), flags, window, data, options[:40])
    tags = draw(st.lists(st.integers(0, 4095), max_size=2))
    if six:
        packet, kind = build.ipv6(src, dst, proto, payload, draw(st.integers(0, 255))), 0x86DD
    else:
        packet, kind = build.ipv4(src, dst, proto, payload, draw(u16), draw(st.integers(0, 255))), 0x0800
    return build.ethernet(MAC_A, MAC_B, packet, kind, tags) + b"\0" * draw(st.sampled_from([0, 0, 6]))


def dpkt_options(segment):
    """Return (tsval, tsecr, first SACK block, mss, wscale + 1) as dpkt reads them."""
    found = {"ts": (0, 0), "sack": (0, 0), "mss": 0, "wscale": 0}
    for kind, data in dpkt.tcp.parse_opts(segment.opts):
        if kind == dpkt.tcp.TCP_OPT_TIMESTAMP and len(data) == 8:
            found["ts"] = (int.from_bytes(data[:4], "big"), int.from_bytes(data[4:], "big"))
        elif kind == dpkt.tcp.TCP_OPT_SACK and len(data) >= 8:
            found["sack"] = (int.from_bytes(data[:4], "big"), int.from_bytes(data[4:8], "big"))
        elif kind == dpkt.tcp.TCP_OPT_MSS and len(data) == 2:
            found["mss"] = int.from_bytes(data, "big")
        elif kind == dpkt.tcp.TCP_OPT_WSCALE and len(data) == 1:
            found["wscale"] = data[0] + 1
    return found


@settings(max_examples=150, deadline=None)
@given(frames())
def test_dpkt_reads_the_same(frame):
    table, _names = parse([frame])
    got = {n: int(v[0]) for n, v in table.items()}
    ip = dpkt.ethernet.Ethernet(frame).data
    inner = ip.data
    assert got["fault"] == 0
    is_tcp = isinstance(inner, dpkt.tcp.TCP)
    assert got["proto"] == (6 if is_tcp else 17)
    assert (got["sport"], got["dport"]) == (inner.sport, inner.dport)
    size = len(inner.data) if is_tcp else inner.ulen - 8
    assert got["payload_bytes"] == size
    assert frame[got["payload_at"] : got["payload_at"] + size] == bytes(inner.data)[:size]
    traffic = ip.fc if isinstance(ip, dpkt.ip6.IP6) else ip.tos
    assert (got["ecn"], got["dscp"]) == (traffic & 3, traffic >> 2)
    if is_tcp:
        assert (got["seq"], got["ack"], got["window"]) == (inner.seq, inner.ack, inner.win)
        assert got["flags"] == inner.flags & 255
        other = dpkt_options(inner)
        assert (got["tsval"], got["tsecr"]) == other["ts"]
        assert (got["sack_lo"], got["sack_hi"]) == other["sack"]
        assert (got["mss"], got["wscale"]) == (other["mss"], other["wscale"])


def test_a_frame_by_hand():
    """A SYN as tcpdump prints it, written out byte by byte (RFC 9293, section 3.1)."""
    frame = bytes.fromhex(
        "020000000002 020000000001 0800"
        "4500 003c 1c46 4000 40 06 0000 ac100a63 ac100a0c"
        "d431 1f90 87d1e1a2 00000000 a0 02 faf0 0000 0000"
        "0204 05b4 0402 080a 0a1b2c3d 00000000 01 0303 07".replace(" ", "")
    )
    table, names = parse([frame])
    got = {n: int(v[0]) for n, v in table.items()}
    assert (got["sport"], got["dport"], got["seq"], got["flags"]) == (54321, 8080, 0x87D1E1A2, 2)
    assert (got["window"], got["mss"], got["wscale"], got["tsval"]) == (64240, 1460, 8, 0x0A1B2C3D)
    assert [names.addresses[got[n]] for n in ("src", "dst")] == ["172.16.10.99", "172.16.10.12"]


@settings(max_examples=40, deadline=None)
@given(st.lists(frames(), min_size=1, max_size=8), st.lists(st.integers(0, 8), max_size=3))
def test_any_batching_gives_the_same_rows(some, cuts):
    """Offsets apart, which are relative to the batch's buffer."""
    whole, directory = parse(some)
    cut, other = parse(some, cuts)
    assert directory.addresses == other.addresses
    assert directory.flows == other.flows
    for name in whole:
        if name != "payload_at":
            assert whole[name].tolist() == cut[name].tolist(), name


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=120), max_size=5))
def test_random_bytes_never_raise_and_give_one_row_each(some):
    table, _ = parse(some)
    assert len(table.get("ts_ns", ())) == len(some)
    if some:
        assert set(table["fault"].tolist()) <= set(FAULTS)


@settings(max_examples=200, deadline=None)
@given(
    frames(), st.lists(st.tuples(st.integers(0, 90), st.integers(0, 255)), max_size=6), st.integers(0, 150)
)
def test_mangled_frames_never_raise_nor_point_outside(frame, changes, kept):
    data = bytearray(frame)
    for at, value in changes:
        data[at % len(data)] = value
    data = bytes(data[: max(kept, 1)])
    table, _ = parse([data])
    got = {n: int(v[0]) for n, v in table.items()}
    assert got["fault"] in FAULTS
    if got["captured_bytes"]:
        assert 0 <= got["payload_at"] <= got["payload_at"] + got["captured_bytes"] <= len(data)
