"""Tunnels and mirror encapsulations by hand: the innermost packet gives the row."""

import struct

import pytest

from skewscope.wire import build
from tests.wire.frames import (
    ADDRESSES4,
    ADDRESSES6,
    CUT,
    FIRST,
    NOT_IP,
    TOO_DEEP,
    A,
    B,
    C,
    D,
    ether,
    is_read,
    outer,
    packet4,
    packet6,
    row,
)

VLAN, VXLAN, GENEVE, GRE, ERSPAN, IP_IN_IP, MPLS = 1, 4, 8, 16, 32, 64, 128
INNER = ether(packet4())


def is_inner(got, six=False):
    """Return whether the row is that of the inner packet."""
    return is_read(got, ADDRESSES6 if six else ADDRESSES4)


GPE = struct.pack(">BHBI", 0x0C, 0, 1, 77 << 8) + packet4()
GPE_ETHERNET = struct.pack(">BHBI", 0x0C, 0, 3, 77 << 8) + INNER
TUNNELS = {
    "vxlan": (outer(build.vxlan(77, INNER)), VXLAN),
    "vxlan, old Linux port": (outer(build.vxlan(77, INNER), port=8472), VXLAN),
    "vxlan, tagged": (outer(build.vxlan(77, ether(packet4(), vlans=(5,)))), VXLAN | VLAN),
    "vxlan-gpe": (outer(GPE, port=4790), VXLAN),
    "vxlan-gpe, ethernet": (outer(GPE_ETHERNET, port=4790), VXLAN),
    "geneve": (outer(build.geneve(77, INNER), port=6081), GENEVE),
    "geneve, options": (outer(build.geneve(77, INNER, options=bytes(12)), port=6081), GENEVE),
    "geneve, ip": (outer(build.geneve(77, packet4(), 0x0800), port=6081), GENEVE),
    "gre": (outer(build.gre(0x0800, packet4()), 47), GRE),
    "gre, all fields": (outer(build.gre(0x0800, packet4(), checksummed=True, key=5, number=6), 47), GRE),
    "gre, key": (outer(build.gre(0x0800, packet4(), key=5), 47), GRE),
    "gre, ethernet": (outer(build.gre(0x6558, INNER), 47), GRE),
    "gre, mpls": (outer(build.gre(0x8847, build.mpls((16, 17), packet4())), 47), GRE | MPLS),
    "erspan 1": (outer(build.erspan(1, INNER), 47), GRE | ERSPAN),
    "erspan 2": (outer(build.erspan(2, INNER, number=9), 47), GRE | ERSPAN),
    "erspan 3": (outer(build.erspan(3, INNER, number=9), 47), GRE | ERSPAN),
    "ip in ip": (outer(packet4(), 4), IP_IN_IP),
    "vxlan in erspan": (outer(build.erspan(2, outer(build.vxlan(77, INNER))), 47), GRE | ERSPAN | VXLAN),
}


@pytest.mark.parametrize("name", TUNNELS)
def test_the_innermost_packet_gives_the_row(name):
    frame, encap = TUNNELS[name]
    got = row(frame)
    assert is_inner(got)
    assert (got["encap"], got["wire_bytes"]) == (encap, len(frame))
    assert frame[got["payload_at"] :][:3] == b"abc"


@pytest.mark.parametrize("name", TUNNELS)
def test_a_tunnel_cut_anywhere_is_cut_and_shows_no_outer_flow(name):
    frame, _ = TUNNELS[name]
    for kept in range(len(frame)):
        got = row(frame, kept=kept)
        assert got["fault"] == (0 if kept >= len(frame) - 3 else CUT)
        assert got["dport"] in (0, 8000)
        assert got["flow"] == 0 or got["src"] == "10.1.2.3"


def test_ipv6_in_and_outside():
    assert is_inner(row(outer(packet6(), 41)), six=True)
    assert is_inner(row(outer(build.gre(0x86DD, packet6()), 47)), six=True)
    carrier = build.ipv6(bytes(15) + b"\1", bytes(15) + b"\2", 4, packet4())
    assert is_inner(row(ether(carrier, 0x86DD)))


@pytest.mark.parametrize(
    "head",
    [b"\0" * 8, b"\x08\0\0\1" + bytes(4), b"\x08" + bytes(6) + b"\1", b"\x88" + bytes(7)],
)
def test_udp_to_the_port_of_vxlan_that_is_something_else(head):
    got = row(outer(head + INNER))
    assert (got["fault"], got["proto"], got["dport"], got["encap"]) == (0, 17, 4789, 0)
    assert got["src"] == "10.1.2.5"


@pytest.mark.parametrize("port", [4789, 8472, 4790, 6081])
def test_a_short_datagram_to_a_tunnels_port_is_just_that(port):
    got = row(outer(b"ping", port=port))
    assert (got["fault"], got["dport"], got["payload_bytes"], got["encap"]) == (0, port, 4, 0)
    assert got["flow"] > 0


def test_what_geneve_and_gre_carry_that_is_not_read():
    assert row(outer(build.geneve(7, bytes(40), 0x0806), port=6081))["dport"] == 6081
    assert row(outer(b"\x40" + build.geneve(7, INNER)[1:], port=6081))["dport"] == 6081  # version 1
    assert row(outer(build.geneve(7, INNER)[:7] + b"\1" + INNER, port=6081))["dport"] == 6081
    for packet in (
        build.gre(0x0806, bytes(28)),
        b"\x20\x01\x88\x0b" + bytes(40),
        b"\x40\0\x08\0" + packet4(),
    ):
        got = row(outer(packet, 47))
        assert (got["fault"], got["proto"], got["src"], got["flow"]) == (0, 47, "10.1.2.5", 0)


def test_arp_in_a_tunnel_is_not_ip_and_has_no_outer_addresses():
    got = row(outer(build.vxlan(7, ether(bytes(28), 0x0806))))
    assert (got["fault"], got["src"], got["flow"], got["encap"]) == (NOT_IP, "-", 0, VXLAN)


@pytest.mark.parametrize("version", [2, 3])
def test_a_mirror_that_says_truncated_counts_the_inner_length(version):
    """The switch kept 64 bytes of a full frame; without its flag, what is there counts."""
    inner = ether(packet4(data=b"x" * 1000))[:64]
    assert row(outer(build.erspan(version, inner, truncated=True), 47))["payload_bytes"] == 1000
    got = row(outer(build.erspan(version, inner), 47))
    assert (got["payload_bytes"], got["captured_bytes"], got["fault"]) == (10, 10, 0)


def test_the_platform_header_of_erspan_3_is_passed():
    packet = build.erspan(3, bytes(8) + INNER)
    flags_at = 8 + 11
    packet = packet[:flags_at] + b"\1" + packet[flags_at + 1 :]
    assert is_inner(row(outer(packet, 47)))


def nested(depth):
    packet = packet4()
    for _ in range(depth):
        packet = build.ipv4(C, D, 4, packet)
    return ether(packet)


def test_tunnels_without_end_are_given_up():
    assert is_inner(row(nested(8)))
    for depth in (9, 12):
        got = row(nested(depth))
        assert (got["fault"], got["src"], got["flow"]) == (TOO_DEEP, "-", 0)


def test_a_first_fragment_of_a_tunnel_is_one():
    frame = outer(build.vxlan(7, INNER))
    got = row(frame[:20] + b"\x20\0" + frame[22:])
    assert (got["fault"], got["src"], got["sport"]) == (FIRST, "10.1.2.3", 40000)


def test_an_inner_packet_ends_with_the_outer_one():
    """Bytes behind the outer packet, as padding or hostile, are no part of the inner."""
    inner = build.ipv4(A, B, 6, packet4()[20:])
    frame = outer(inner[:40], 4) + b"x" * 20
    got = row(frame)
    assert (got["payload_bytes"], got["captured_bytes"], got["fault"]) == (0, 0, 0)
