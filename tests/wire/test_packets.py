"""Frames to the `packets` table: hand-made frames of every kind, and what contradicts itself."""

import struct

import numpy as np
import pytest

from skewscope.core.directory import Directory
from skewscope.wire import build, intern
from skewscope.wire.packets import PATIENCE, PacketParser

MAC_A, MAC_B = b"\x02SYN\x00\x01", b"\x02SYN\x00\x02"
A, B, C = (bytes([10, 1, 2, n]) for n in (3, 4, 5))
A6, B6 = bytes.fromhex("20010db8" + "00" * 11 + "01"), bytes.fromhex("20010db8" + "00" * 11 + "02")
CUT, CONTRADICT, NOT_IP, FRAGMENT, FIRST, TOO_DEEP = range(1, 7)


def parse(frames, *, parser=None, kept=None, wire=None, tap=0, first=1):
    """Parse frames given as bytes; `kept` cuts each one as a snap length would."""
    parser = parser or PacketParser(Directory())
    kept = [f if kept is None else f[:kept] for f in frames]
    sizes = np.array([len(f) for f in kept], dtype=np.int64)
    at = np.cumsum(sizes) - sizes
    wire = np.array([len(f) for f in frames] if wire is None else wire, dtype=np.int64)
    buf = np.frombuffer(b"".join(kept), np.uint8)
    return parser.parse(buf, np.arange(len(frames), dtype=np.int64), at, sizes, wire, tap, first).packets


def row(frame, **more):
    table = parse([frame], **more)
    return {n: int(table[n][0]) for n in table.columns}


def segment(data=b"", flags=build.ACK, options=b"", src=A, dst=B, sport=40000, dport=8000):
    return build.tcp(src, dst, sport, dport, 7, 9, flags, 512, data, options)


def over_ip4(payload, src=A, dst=B, proto=6, **more):
    return build.ethernet(MAC_A, MAC_B, build.ipv4(src, dst, proto, payload, **more))


def edit(frame, at, data):
    return frame[:at] + data + frame[at + len(data) :]


def test_tcp_over_ipv4():
    got = row(over_ip4(segment(b"hello"), ident=77, tos=0xB9))
    assert (got["fault"], got["proto"], got["payload_bytes"], got["captured_bytes"]) == (0, 6, 5, 5)
    assert (got["sport"], got["dport"], got["seq"], got["ack"]) == (40000, 8000, 7, 9)
    assert (got["flags"], got["window"], got["ip_id"]) == (build.ACK, 512, 77)
    assert (got["ecn"], got["dscp"], got["payload_at"], got["frame"]) == (1, 46, 54, 1)


@pytest.mark.parametrize("tags", [(5,), (5, 6)])
def test_vlan_tags_are_passed_over(tags):
    frame = build.ethernet(MAC_A, MAC_B, build.ipv4(A, B, 6, segment(b"abc")), vlans=tags)
    assert row(frame)["payload_bytes"] == 3
    service = edit(frame, 12, b"\x88\xa8")
    assert row(service)["payload_bytes"] == 3


@pytest.mark.parametrize("count", [3, 8, 9])
def test_up_to_eight_tags_are_read(count):
    frame = build.ethernet(MAC_A, MAC_B, build.ipv4(A, B, 6, segment()), vlans=range(count))
    got = row(frame)
    assert (got["fault"], got["sport"]) == ((0, 40000) if count <= 8 else (TOO_DEEP, 0))


def test_a_frame_cut_within_its_tag_is_cut():
    frame = build.ethernet(MAC_A, MAC_B, build.ipv4(A, B, 6, segment()), vlans=(1,))
    assert row(frame, kept=16)["fault"] == CUT


@pytest.mark.parametrize("words", [1, 10])
def test_ipv4_options_are_passed_over(words):
    plain = build.ipv4(A, B, 6, segment(b"abc"))
    total = struct.pack(">H", len(plain) + 4 * words)
    packet = bytes([0x45 + words]) + plain[1:2] + total + plain[4:20] + b"\x01" * (4 * words) + plain[20:]
    got = row(build.ethernet(MAC_A, MAC_B, packet))
    assert (got["fault"], got["sport"], got["payload_bytes"]) == (0, 40000, 3)


def over_ip6(payload, proto=6, tclass=0):
    return build.ethernet(MAC_A, MAC_B, build.ipv6(A6, B6, proto, payload, tclass), 0x86DD)


def chain(kinds, last, payload):
    """Return a chain of 8-byte extension headers before a payload."""
    out = payload
    for kind_after in [last, *reversed(kinds[1:])]:
        out = bytes([kind_after, 0]) + b"\x01\x04" + b"\0" * 4 + out
    return out


@pytest.mark.parametrize("kinds", [[0], [60], [43, 60], [0, 60, 43]])
def test_ipv6_extension_headers_are_passed_over(kinds):
    inner = build.tcp(A6, B6, 40000, 8000, 7, 9, build.ACK, 512, b"abc")
    got = row(over_ip6(chain(kinds, 6, inner), proto=kinds[0], tclass=0x02))
    assert (got["fault"], got["proto"], got["dport"], got["payload_bytes"], got["ecn"]) == (0, 6, 8000, 3, 2)


def test_an_endless_ipv6_chain_is_given_up():
    got = row(over_ip6(chain([0] * 20, 6, segment()), proto=0))
    assert (got["fault"], got["flow"]) == (TOO_DEEP, 0)


def test_an_ipv6_chain_that_points_past_the_frame_is_cut():
    got = row(over_ip6(b"\x06\xff" + b"\0" * 6 + segment(), proto=0))
    assert got["fault"] == CUT


@pytest.mark.parametrize("bits", [0x0001, 0x1FFF, 0x2001])
def test_later_fragments_are_named_and_not_followed(bits):
    got = row(edit(over_ip4(segment(b"abc")), 20, struct.pack(">H", bits)))
    assert (got["fault"], got["flow"], got["payload_bytes"], got["proto"]) == (FRAGMENT, 0, 0, 6)
    assert got["src"] > 0


def test_a_first_fragment_has_ports_and_its_part_of_the_payload():
    """UDP's own length is that of the whole datagram, so it does not count here."""
    datagram = build.udp(A, B, 5, 6, b"x" * 1000)[:508]
    got = row(edit(over_ip4(datagram, proto=17), 20, struct.pack(">H", 0x2000)))
    assert (got["fault"], got["sport"], got["dport"], got["payload_bytes"]) == (FIRST, 5, 6, 500)
    assert got["flow"] > 0


def fragment_header(offset, more, kind=6):
    return bytes([kind, 0]) + struct.pack(">HI", offset << 3 | more, 77)


def test_ipv6_fragments():
    """An atomic fragment, the only one of its packet, is as good as whole (RFC 6946)."""
    for offset, more, fault in ((0, 0, 0), (0, 1, FIRST), (185, 1, FRAGMENT), (185, 0, FRAGMENT)):
        got = row(over_ip6(fragment_header(offset, more) + segment(b"abc"), proto=44))
        assert (got["fault"], got["proto"]) == (fault, 6)
        assert (got["sport"], got["payload_bytes"]) == ((0, 0) if fault == FRAGMENT else (40000, 3))


def test_a_fragment_behind_other_extension_headers():
    got = row(over_ip6(chain([60], 44, fragment_header(0, 1) + segment(b"abc")), proto=60))
    assert (got["fault"], got["dport"]) == (FIRST, 8000)


def test_all_tcp_options():
    options = build.tcp_options(mss=1460, wscale=14, timestamps=(11, 12), sack_permitted=True)
    got = row(over_ip4(segment(flags=build.SYN, options=options)))
    assert (got["mss"], got["wscale"], got["tsval"], got["tsecr"]) == (1460, 15, 11, 12)
    sacks = build.tcp_options(timestamps=(1, 2), sacks=[(100, 200), (300, 400)])
    got = row(over_ip4(segment(options=sacks)))
    assert (got["sack_lo"], got["sack_hi"]) == (100, 200)


@pytest.mark.parametrize(
    "options",
    [
        b"\x08\x0a\0\0",  # longer than the header
        b"\x08\x00\0\0",  # length 0
        b"\x08\x01\0\0",  # length 1
        b"\x01\x01\x01\x08",  # kind without length
        b"\x00\x08\x0a\0",  # after the end of the list
        b"\x03\x04\x07\0",  # a wrong length for its kind
        b"\xfe\x04ab",  # unknown
    ],
)
def test_broken_tcp_options_say_nothing_and_break_nothing(options):
    got = row(over_ip4(segment(b"abc", options=options)))
    assert (got["fault"], got["payload_bytes"], got["tsval"], got["wscale"]) == (0, 3, 0, 0)


def test_an_absurd_window_scale_is_capped():
    """RFC 7323, section 2.3: shifts above 14 count as 14."""
    assert row(over_ip4(segment(options=b"\x03\x03\xff\x00")))["wscale"] == 15


@pytest.mark.parametrize("offset", [0x00, 0x40, 0xF0])
def test_a_tcp_header_length_that_contradicts(offset):
    got = row(edit(over_ip4(segment(b"abc")), 46, bytes([offset])))
    assert (got["fault"], got["payload_bytes"], got["captured_bytes"]) == (CONTRADICT, 0, 0)


@pytest.mark.parametrize("head", [0x40, 0x44])
def test_an_ip_header_length_that_contradicts(head):
    assert row(edit(over_ip4(segment()), 14, bytes([head])))["fault"] == CONTRADICT


def test_an_ip_length_shorter_than_its_header_contradicts():
    assert row(edit(over_ip4(segment()), 16, struct.pack(">H", 12)))["fault"] == CONTRADICT


def test_an_ip_length_beyond_the_frame_counts_what_is_there():
    got = row(edit(over_ip4(segment(b"abc")), 16, struct.pack(">H", 60_000)))
    assert (got["fault"], got["payload_bytes"], got["captured_bytes"]) == (0, 3, 3)


def test_an_ip_length_of_zero_is_offload_and_the_frame_counts():
    got = row(edit(over_ip4(segment(b"x" * 3000)), 16, b"\0\0"), wire=[70_000])
    assert (got["fault"], got["payload_bytes"], got["captured_bytes"]) == (0, 70_000 - 54, 3000)
    six = over_ip6(build.tcp(A6, B6, 1, 2, 3, 4, build.ACK, 5, b"x" * 300))
    assert row(edit(six, 18, b"\0\0"))["payload_bytes"] == 300


def test_padding_is_no_payload():
    frame = over_ip4(segment())
    got = row(frame + b"\0" * (60 - len(frame)))
    assert (got["payload_bytes"], got["captured_bytes"]) == (0, 0)


@pytest.mark.parametrize("kept", [54, 60, 114])
def test_a_snap_length_cuts_the_captured_bytes_only(kept):
    got = row(over_ip4(segment(b"x" * 500)), kept=kept)
    assert (got["fault"], got["payload_bytes"], got["captured_bytes"]) == (0, 500, kept - 54)
    assert got["wire_bytes"] == 554


def test_cut_at_every_length():
    """Ports are known from byte 38 on; from byte 54 on nothing is missing."""
    whole = over_ip4(segment(b"abc"))
    for kept in range(len(whole)):
        got = row(whole, kept=kept)
        assert got["fault"] == (0 if kept >= 54 else CUT)
        assert got["sport"] == (40000 if kept >= 38 else 0)
        assert (got["flow"] > 0) == (kept >= 38)
        assert (got["src"] > 0) == (kept >= 34)


def test_udp():
    got = row(over_ip4(build.udp(A, B, 5, 6, b"x" * 9), proto=17))
    assert (got["fault"], got["proto"], got["payload_bytes"], got["flags"]) == (0, 17, 9, 0)
    short = edit(over_ip4(build.udp(A, B, 5, 6, b"x" * 9), proto=17), 16, struct.pack(">H", 24))
    assert row(short)["fault"] == CONTRADICT


def test_other_protocols_have_addresses_and_no_flow():
    got = row(over_ip4(b"\x08\0" + b"\0" * 30, proto=1))
    assert (got["fault"], got["proto"], got["flow"], got["sport"]) == (0, 1, 0, 0)
    assert got["src"] != got["dst"]
    assert row(build.ethernet(MAC_A, MAC_B, b"\0" * 46, 0x0806))["fault"] == NOT_IP
    assert row(edit(over_ip4(segment()), 14, b"\x75"))["fault"] == NOT_IP


def test_both_directions_are_one_flow_and_way_tells_them_apart():
    there, back = over_ip4(segment()), over_ip4(segment(src=B, dst=A, sport=8000, dport=40000), src=B, dst=A)
    table = parse([there, back, there])
    assert len(set(table["flow"].tolist())) == 1
    assert table["way"].tolist() == [0, 1, 0]
    assert (table["src"][0], table["dst"][0]) == (table["dst"][1], table["src"][1])


@pytest.mark.parametrize("flip", [False, True])
def test_way_follows_the_flows_first_endpoint(flip):
    """Whatever the order of sight, way 0 is the direction in which src is the flow's end a."""
    pair = [over_ip4(segment()), over_ip4(segment(src=B, dst=A, sport=8000, dport=40000), src=B, dst=A)]
    parser = PacketParser(Directory())
    table = parse(pair[::-1] if flip else pair, parser=parser)
    flow = parser.directory.flows[table["flow"][0]]
    for src, sport, way in zip(table["src"], table["sport"], table["way"], strict=True):
        assert (src, sport) == ((flow.a, flow.a_port) if way == 0 else (flow.b, flow.b_port))


def test_a_connection_of_a_host_with_itself_is_a_flow():
    frame = over_ip4(segment(src=A, dst=A, sport=9, dport=9), src=A, dst=A)
    table = parse([frame])
    assert table["flow"][0] > 0
    assert table["src"][0] == table["dst"][0]


def test_two_taps_share_flow_and_address_ids():
    parser = PacketParser(Directory())
    frame = over_ip4(segment())
    parse([over_ip4(segment(src=C), src=C)], parser=parser)
    one, two = parse([frame], parser=parser, tap=1), parse([frame], parser=parser, tap=2, first=9)
    for name in ("flow", "way", "src", "dst"):
        assert one[name].tolist() == two[name].tolist()
    assert (one["tap"][0], two["tap"][0], two["frame"][0]) == (1, 2, 9)


def test_tcp_and_udp_of_equal_ports_are_two_flows():
    udp = over_ip4(build.udp(A, B, 40000, 8000, b"abc"), proto=17)
    table = parse([over_ip4(segment()), udp])
    assert len(set(table["flow"].tolist())) == 2


def many(count):
    return [
        over_ip4(
            segment(src=bytes([10, 2, i // 250, i % 250]), dport=80), src=bytes([10, 2, i // 250, i % 250])
        )
        for i in range(count)
    ]


def test_a_batch_gives_the_ids_that_its_frames_give_one_by_one():
    frames = [frame for one in many(3 * PATIENCE) for frame in (one, one)] + many(PATIENCE + 1)
    at_once, single = parse(frames), PacketParser(Directory())
    rows = [parse([frame], parser=single) for frame in frames]
    for name in ("src", "dst", "flow", "way"):
        assert at_once[name].tolist() == [int(table[name][0]) for table in rows]


def test_ids_survive_the_growth_of_their_tables():
    parser = PacketParser(Directory())
    frames = many(5_000)
    first = np.concatenate([parse(frames[i : i + 500], parser=parser)["flow"] for i in range(0, 5_000, 500)])
    again = parse(frames, parser=parser)
    assert len(set(first.tolist())) == 5_000
    assert first.tolist() == again["flow"].tolist()
    assert len(parser.directory.flows) == 5_001
    assert len(parser.directory.addresses) == 5_002
    assert parser.directory.addresses[again["src"][42]] == "10.2.0.42"


def test_beyond_the_limit_on_addresses_rows_are_kept_nameless(monkeypatch):
    monkeypatch.setattr(intern, "MAX_ADDRESSES", 10)
    parser = PacketParser(Directory())
    table = parse(many(30), parser=parser)
    assert len(parser.directory.addresses) == 11
    assert np.count_nonzero(table["src"]) == 9  # and one id for the server
    nameless = table["src"] == 0
    assert not table["flow"][nameless].any()
    assert parser.nameless_rows == np.count_nonzero(nameless)
    assert (table["wire_bytes"] > 0).all()


def test_beyond_the_limit_on_flows_rows_are_kept_unfollowed(monkeypatch):
    monkeypatch.setattr(intern, "MAX_FLOWS", 5)
    parser = PacketParser(Directory())
    table = parse(many(8), parser=parser)
    assert table["flow"].tolist() == [1, 2, 3, 4, 5, 0, 0, 0]
    assert parser.nameless_rows == 3
    assert parse(many(8)[:5], parser=parser)["flow"].tolist() == [1, 2, 3, 4, 5]


def test_addresses_are_written_as_people_write_them():
    parser = PacketParser(Directory())
    table = parse([over_ip4(segment()), over_ip6(segment())], parser=parser)
    names = parser.directory.addresses
    assert [names[i] for i in table["src"]] == ["10.1.2.3", "2001:db8::1"]
    mapped = bytes(10) + b"\xff\xff" + A
    frame = build.ethernet(MAC_A, MAC_B, build.ipv6(mapped, B6, 6, segment()), 0x86DD)
    assert parse([frame], parser=parser)["src"][0] == table["src"][0]


def test_an_empty_batch_is_an_empty_table():
    assert len(parse([])) == 0
