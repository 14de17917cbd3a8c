"""Builders against the parsers, and both against dpkt, which knows neither."""

import struct

import dpkt
import numpy as np
import pytest

from skewscope.core.directory import Directory
from skewscope.wire import build
from skewscope.wire.gloo import plausible
from skewscope.wire.packets import PacketParser
from skewscope.wire.pcap import parse_header, walk_records

MAC_A, MAC_B = b"\x02SYN\x00\x01", b"\x02SYN\x00\x02"
A, B = bytes([10, 1, 2, 3]), bytes([10, 1, 2, 4])
A6, B6 = bytes(range(16)), bytes(range(16, 32))


def parsed(*frames):
    data = b"".join(frames)
    ends = np.cumsum([len(f) for f in frames])
    sizes = np.array([len(f) for f in frames])
    parser = PacketParser(Directory())
    at = (ends - sizes).astype(np.int64)
    buf = np.frombuffer(data, dtype=np.uint8)
    return parser.parse(buf, np.arange(len(frames)), at, sizes, sizes, 0, 1).packets, parser.directory


@pytest.mark.parametrize("size", [0, 1, 47, 1448])
def test_a_lane_makes_what_the_parsers_read(size):
    lane = build.Lane(MAC_A, MAC_B, A, B, 40000, 8000)
    data = bytes(range(256)) * 6
    frame = lane.frame(7, 1 << 32 | 5, 6, build.PSH | build.ACK, 64, 1000, 2000, data[:size])
    table, names = parsed(frame)
    row = {n: table[n][0] for n in table.columns}
    assert row["fault"] == 0
    assert (row["seq"], row["ack"], row["flags"], row["window"]) == (5, 6, 24, 64)
    assert (row["sport"], row["dport"], row["ip_id"]) == (40000, 8000, 7)
    assert (row["tsval"], row["tsecr"], row["payload_bytes"]) == (1000, 2000, size)
    assert [names.addresses[row[n]] for n in ("src", "dst")] == ["10.1.2.3", "10.1.2.4"]


@pytest.mark.parametrize("data", [b"", b"a", b"ab", b"\xff" * 100, b"\x00" * 3])
def test_checksums_agree_with_another_implementation(data):
    frame = build.Lane(MAC_A, MAC_B, A, B, 1, 2).frame(3, 4, 5, build.ACK, 6, 7, 8, data)
    ethernet = dpkt.ethernet.Ethernet(frame)
    ip, segment = ethernet.data, ethernet.data.data
    sums = ip.sum, segment.sum
    ip.sum = segment.sum = 0
    again = dpkt.ethernet.Ethernet(bytes(ethernet))
    assert (again.data.sum, again.data.data.sum) == sums


def test_the_quick_and_the_general_builder_agree():
    options = build.tcp_options(timestamps=(7, 8))
    quick = build.Lane(MAC_A, MAC_B, A, B, 1, 2).frame(3, 4, 5, build.ACK, 6, 7, 8, b"abc")
    segment = build.tcp(A, B, 1, 2, 4, 5, build.ACK, 6, b"abc", options)
    assert quick == build.ethernet(MAC_A, MAC_B, build.ipv4(A, B, 6, segment, 3))


def test_options_vlans_ipv6_and_udp_are_read_back():
    options = build.tcp_options(mss=1460, wscale=10, timestamps=(1, 2), sack_permitted=True)
    syn = build.tcp(A, B, 5, 6, 7, 0, build.SYN, 64240, options=options)
    sack = build.tcp(
        A, B, 5, 6, 8, 9, build.ACK, 64, options=build.tcp_options(timestamps=(1, 2), sacks=[(20, 30)])
    )
    frames = (
        build.ethernet(MAC_A, MAC_B, build.ipv4(A, B, 6, syn), vlans=(5, 6)),
        build.ethernet(MAC_A, MAC_B, build.ipv4(A, B, 6, sack, tos=3)),
        build.ethernet(MAC_A, MAC_B, build.ipv6(A6, B6, 17, build.udp(A6, B6, 9, 10, b"x" * 9)), 0x86DD),
    )
    table, _ = parsed(*frames)
    assert table["fault"].tolist() == [0, 0, 0]
    assert (table["mss"][0], table["wscale"][0], table["tsval"][0]) == (1460, 11, 1)
    assert (table["sack_lo"][1], table["sack_hi"][1], table["ecn"][1]) == (20, 30, 3)
    assert (table["proto"][2], table["payload_bytes"][2], table["dport"][2]) == (17, 9, 10)
    datagram = dpkt.ethernet.Ethernet(frames[2]).data.data
    assert (datagram.sport, datagram.ulen, datagram.data) == (9, 17, b"x" * 9)


def test_a_capture_is_read_back():
    frames = [bytes([i]) * (20 + i) for i in range(5)]
    times = [1_700_000_000_123_456_789 + i for i in range(5)]
    data = build.capture([(t, f, 100) for t, f in zip(times, frames, strict=True)], 22)
    header = parse_header(data)
    assert header is not None
    assert (header.big_endian, header.unit_ns, header.snap_length) == (False, 1, 22)
    ts, at, captured, wire = (np.zeros(8, dtype=np.int64) for _ in range(4))
    buf = np.frombuffer(data, dtype=np.uint8)[24:]
    n, used, damage = walk_records(buf, 0, False, 1, 16, ts, at, captured, wire)
    assert (n, used, damage) == (5, len(buf), 0)
    assert ts[:5].tolist() == times
    assert captured[:5].tolist() == [20, 21, 22, 22, 22]
    assert [bytes(buf[a : a + c]) for a, c in zip(at, captured, strict=False)][:3] == frames[:3]


def test_a_preamble_is_plausible_and_laid_out_as_gloo_does():
    made = build.gloo_preamble(512, 1, 4, 0x53, 512)
    assert struct.unpack("<6Q", made) == (560, 1, 4 << 56 | 0x53 << 24, 0, 512, 0)
    assert plausible(np.frombuffer(made, dtype=np.uint8), 0, 48)


def test_chunks():
    assert build.http_chunk(b"hello world") == b"b\r\nhello world\r\n"
    assert build.http_chunk(b"") == b"0\r\n\r\n"
