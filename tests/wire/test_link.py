"""Link layers by hand: what stands before IP in captures of every kind."""

import struct

import pytest

from skewscope.wire import build
from skewscope.wire.packets import PROTO_GRH, PROTO_LRH
from tests.wire.frames import (
    ADDRESSES4,
    ADDRESSES6,
    CUT,
    NO_LINK,
    NOT_IP,
    TOO_DEEP,
    ether,
    is_read,
    packet4,
    packet6,
    row,
)

VLAN, QINQ, MPLS = 1, 2, 128


@pytest.mark.parametrize("link", [12, 14, 101, 228])
def test_raw_ipv4(link):
    got = row(packet4(), link)
    assert is_read(got)
    assert got["payload_at"] == 40


@pytest.mark.parametrize("link", [12, 14, 101, 229])
def test_raw_ipv6(link):
    assert is_read(row(packet6(), link), ADDRESSES6)


@pytest.mark.parametrize("order", ["<I", ">I"])
def test_bsd_loopback_in_both_byte_orders(order):
    for link in (0, 108):
        assert is_read(row(struct.pack(order, 2) + packet4(), link))
        for family in (10, 24, 28, 30):
            assert is_read(row(struct.pack(order, family) + packet6(), link), ADDRESSES6)
        assert row(struct.pack(order, 7) + packet4(), link)["fault"] == NOT_IP
    assert row(b"\2\0\0", 0)["fault"] == CUT


def cooked(kind, packet_type=0):
    return struct.pack(">HHH8sH", packet_type, 1, 6, b"\2SYN\0\1\0\0", kind)


def cooked2(kind, packet_type=0):
    return struct.pack(">HHIHBB8s", kind, 0, 3, 1, packet_type, 6, b"\2SYN\0\1\0\0")


@pytest.mark.parametrize(("link", "head"), [(113, cooked), (276, cooked2)])
def test_linux_cooked_captures_say_the_direction(link, head):
    for packet_type, direction in ((0, 1), (1, 1), (3, 1), (4, 2)):
        got = row(head(0x0800, packet_type) + packet4(), link)
        assert is_read(got)
        assert got["direction"] == direction
    assert is_read(row(head(0x86DD) + packet6(), link), ADDRESSES6)
    assert is_read(row(head(0x8100) + b"\0\5\x08\0" + packet4(), link))
    assert row(head(0x0806) + bytes(28), link)["fault"] == NOT_IP
    assert row(head(0x0800)[:-1], link)["fault"] == CUT
    assert row(ether(packet4()))["direction"] == 0


def erf(kind, payload, *, extensions=0, size=None):
    """Return an ERF record; extension headers of eight bytes each say whether another follows."""
    more = b"".join(bytes([0x80 * (k + 1 < extensions) | 3]) + bytes(7) for k in range(extensions))
    size = len(payload) if size is None else size
    head = struct.pack(">QBBHHH", 0, kind | 0x80 * (extensions > 0), 4, 16, 0, size)
    return head + more + payload


@pytest.mark.parametrize("kind", [2, 11, 16, 20])
@pytest.mark.parametrize("extensions", [0, 1, 3])
def test_erf_has_its_own_wire_length(kind, extensions):
    frame = ether(packet4())
    record = erf(kind, b"\0\0" + frame, extensions=extensions, size=1000) + bytes(6)
    got = row(record, 197)
    assert is_read(got)
    assert got["wire_bytes"] == 1000


def test_erf_of_other_kinds():
    assert is_read(row(erf(22, packet4()), 197))
    assert is_read(row(erf(23, packet6()), 197), ADDRESSES6)
    assert row(erf(7, packet4()), 197)["fault"] == NO_LINK
    assert row(erf(2, b"\0\0" + ether(packet4()), extensions=9), 197)["fault"] == TOO_DEEP
    assert row(erf(2, b"", extensions=2)[:-1], 197)["fault"] == CUT
    assert row(bytes(15), 197)["fault"] == CUT


def test_infiniband_is_left_to_its_own_decoder():
    """Native InfiniBand starts with its local route header, RoCEv1 with a global one."""
    for record, link, at in ((bytes(60), 247, 0), (erf(21, bytes(60)), 197, 16)):
        got = row(record, link)
        assert (got["fault"], got["proto"], got["flow"]) == (NOT_IP, PROTO_LRH, 0)
        assert (got["payload_at"], got["captured_bytes"], got["payload_bytes"]) == (at, 60, 60)
    got = row(ether(bytes(60), 0x8915, vlans=(5,)), kept=50, wire=[78])
    assert (got["fault"], got["proto"], got["encap"]) == (NOT_IP, PROTO_GRH, VLAN)
    assert (got["payload_at"], got["captured_bytes"], got["payload_bytes"]) == (18, 32, 60)


@pytest.mark.parametrize("link", [195, 105, 65535])
def test_other_link_types_are_said_not_to_be_read(link):
    got = row(ether(packet4()), link)
    assert (got["fault"], got["src"], got["wire_bytes"]) == (NO_LINK, "-", 57)


def test_tags_and_their_bits():
    assert row(ether(packet4(), vlans=(1,)))["encap"] == VLAN
    assert row(ether(packet4(), vlans=(1, 2)))["encap"] == VLAN | QINQ
    for service in (b"\x88\xa8", b"\x91\x00"):
        frame = ether(packet4(), vlans=(1, 2))
        got = row(frame[:12] + service + frame[14:])
        assert is_read(got)
        assert got["encap"] == QINQ


def test_snap():
    """IP in IEEE 802.3 frames (RFC 1042); spanning tree has the same kind of header."""
    packet = packet4()
    snap = b"\xaa\xaa\x03\0\0\0\x08\0"
    assert is_read(row(ether(snap + packet, len(packet) + 8)))
    assert is_read(row(ether(b"\xaa\xaa\x03\0\0\0\x81\0\0\5\x08\0" + packet, len(packet) + 12)))
    assert row(ether(b"\x42\x42\x03" + bytes(35), 38))["fault"] == NOT_IP
    assert row(ether(b"\xaa\xaa\x03\0\0\x0c\x20\0" + bytes(30), 38))["fault"] == NOT_IP
    assert row(ether(snap + packet, 3 + len(packet)), kept=18)["fault"] == CUT


@pytest.mark.parametrize("count", [1, 2, 8])
def test_mpls_label_stacks(count):
    for packet, addresses in ((packet4(), ADDRESSES4), (packet6(), ADDRESSES6)):
        got = row(ether(build.mpls(range(16, 16 + count), packet), 0x8847))
        assert is_read(got, addresses)
        assert got["encap"] == MPLS


def test_mpls_without_a_bottom_or_without_ip():
    assert row(ether(build.mpls(range(9), packet4()), 0x8847))["fault"] == TOO_DEEP
    assert row(ether(build.mpls((16,), bytes(40)), 0x8848))["fault"] == NOT_IP
    assert row(ether(build.mpls((16, 17), packet4()), 0x8847), kept=20)["fault"] == CUT


def test_a_batch_may_mix_link_types():
    """pcapng files do, and any of them equals the row that it has alone."""
    from tests.wire.frames import parse

    records = [ether(packet4()), packet6(), cooked(0x0800, 4) + packet4(), ether(packet4())]
    table, names = parse(records, [1, 101, 113, 195])
    assert table["fault"].tolist() == [0, 0, 0, NO_LINK]
    assert table["direction"].tolist() == [0, 0, 2, 0]
    assert [names.addresses[k] for k in table["src"]] == ["10.1.2.3", "2001:db8::1", "10.1.2.3", "-"]
