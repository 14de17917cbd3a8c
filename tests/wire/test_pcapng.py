"""pcapng: byte orders, sections, interfaces, clocks, every kind of block, damage, and any split."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.wire.formats import MAX_CAPTURED
from skewscope.wire.pcapng import LIMIT_NS, MAX_BLOCK, PcapngReader, options
from skewscope.wire.pcapng_write import PcapngWriter
from skewscope.wire.records import Rows

NOW = 1_700_000_000_123_456_789
ORDERS = [False, True]


def read(data, sizes=(1 << 30,), limit=1 << 10):
    """Return (rows as tuples, the reader, bytes left, problem), the bytes given in pieces."""
    reader, rows, found = PcapngReader(), Rows(1 << 10), []
    pending, rest, skip, k = b"", data, 0, 0
    while True:
        size = sizes[k % len(sizes)]
        k += 1
        pending, rest = pending + rest[:size], rest[size:]
        drop = min(skip, len(pending))
        pending, skip = pending[drop:], skip - drop
        while True:
            walk = reader.walk(np.frombuffer(pending, np.uint8), 0, rows, limit)
            found += [
                (
                    int(rows.ts[i]),
                    pending[rows.at[i] : rows.at[i] + rows.captured[i]],
                    int(rows.wire[i]),
                    int(rows.frame[i]),
                    int(rows.interface[i]),
                    int(rows.direction[i]),
                )
                for i in range(walk.rows)
            ]
            pending = pending[walk.end :]
            if walk.problem:
                return found, reader, len(pending) + len(rest), walk.problem
            if walk.skip:
                drop = min(walk.skip, len(pending))
                pending, skip = pending[drop:], walk.skip - drop
            elif not walk.end:
                break
        if not rest:
            return found, reader, len(pending), ""


def started(big=False, **interface):
    writer = PcapngWriter(big_endian=big)
    return writer, writer.header() + writer.interface("eth0", **interface)


@pytest.mark.parametrize("big", ORDERS)
def test_packets_with_direction_and_comments(big):
    writer, data = started(big, snap_length=96)
    data += writer.packet(NOW, b"abc", 1500, direction=1, comment="x")
    data += writer.packet(NOW + 1, b"", 0, comment="yy")
    data += writer.packet(NOW + 2, b"abcd", 4, direction=2)
    found, reader, left, problem = read(data)
    assert found == [(NOW, b"abc", 1500, 1, 0, 1), (NOW + 1, b"", 0, 2, 0, 0), (NOW + 2, b"abcd", 4, 3, 0, 2)]
    assert (left, problem, reader.notes()) == (0, "", [])
    assert [(i.number, i.name, i.link, i.snap_length) for i in reader.interfaces] == [(0, "eth0", 1, 96)]


@pytest.mark.parametrize("resolution", [0, 3, 6, 9, 12, 15, 0x80, 0x8A, 0x94, 0x9E, 0xA0, 0xA1])
@pytest.mark.parametrize("offset_s", [0, 1_000_000_000, -77])
def test_every_resolution_and_offset(resolution, offset_s):
    """Times from 2023 fit into 64 bits at all these; what is finer than the unit is lost."""
    ts = NOW if resolution != 12 and resolution != 15 else NOW % 10**12  # 2^64 ps are 213 days
    if offset_s and resolution in (12, 15):
        ts += offset_s * 10**9 if offset_s > 0 else 10**12
    writer, data = started(resolution=resolution, offset_s=offset_s)
    found, *_ = read(data + writer.packet(ts, b"a", 1))
    power = resolution & 0x7F
    unit_ns = 10**9 / (2**power if resolution & 0x80 else 10**power)
    assert 0 <= ts - found[0][0] <= max(unit_ns, 1)


@pytest.mark.parametrize("resolution", [16, 19, 20, 30, 127, 0xA3, 0xBF, 0xC0, 0xE0, 0xFF])
def test_resolutions_beyond_use_give_times_within_the_limits(resolution):
    writer, data = started()
    at = data.index(struct.pack("<HH", 9, 1))
    data = data[: at + 4] + bytes([resolution]) + data[at + 5 :]
    head = struct.pack("<IIIII", 0, 0xFFFFFFFF, 0xFFFFFFFF, 1, 1)
    found, *_ = read(data + writer.block(6, head + b"a"))
    power = resolution & 0x7F
    expected = (2**64 - 1) * 10**9 // (2**power if resolution & 0x80 else 10**power)
    assert abs(found[0][0] - min(expected, LIMIT_NS)) <= 1


@pytest.mark.parametrize("offset_s", [2**62, -(2**62), 2**63 - 1, -(2**63)])
def test_hostile_offsets_stay_within_the_limits(offset_s):
    writer, data = started()
    at = data.index(struct.pack("<HH", 9, 1))
    data = writer.header()
    body = struct.pack("<HHI", 1, 0, 0)
    data += writer.block(1, body, [(14, struct.pack("<q", offset_s)), (9, b"\x09")])
    head = struct.pack("<IIIII", 0, NOW >> 32, NOW & 0xFFFFFFFF, 1, 1)
    found, *_ = read(data + writer.block(6, head + b"a"))
    assert at
    assert 0 <= found[0][0] <= LIMIT_NS


def test_interfaces_with_clocks_and_links_of_their_own():
    writer, data = started(resolution=6)
    data += writer.interface("any", link=113, resolution=0x9E)
    data += writer.packet(NOW, b"a", 1, 1) + writer.packet(NOW, b"b", 1, 0)
    found, reader, *_ = read(data)
    assert [(r[1], r[4]) for r in found] == [(b"a", 1), (b"b", 0)]
    assert found[1][0] == NOW // 1000 * 1000
    assert abs(found[0][0] - NOW) <= 2
    assert [i.link for i in reader.interfaces] == [1, 113]


def test_sections_may_change_the_byte_order():
    data = b""
    for k, big in enumerate([False, True, False]):
        writer, head = started(big)
        data += head + writer.packet(NOW + k, b"%d" % k, 1)
    found, reader, left, problem = read(data)
    assert [(r[0] - NOW, r[1], r[3], r[4]) for r in found] == [(k, b"%d" % k, k + 1, k) for k in range(3)]
    assert (left, problem) == (0, "")
    assert [i.number for i in reader.interfaces] == [0, 0, 0]


@pytest.mark.parametrize("big", ORDERS)
def test_simple_and_obsolete_packet_blocks(big):
    order = ">" if big else "<"
    writer, data = started(big, snap_length=3)
    data += writer.packet(NOW, b"abc", 3)
    data += writer.block(3, struct.pack(order + "I", 9) + b"defghijkl")
    old = struct.pack(order + "HHIIII", 0, 0xFFFF, NOW >> 32, NOW & 0xFFFFFFFF, 3, 70)
    data += writer.block(2, old + b"mno", [(2, struct.pack(order + "I", 2))])
    found, reader, left, problem = read(data)
    assert found == [(NOW, b"abc", 3, 1, 0, 0), (NOW, b"def", 9, 2, 0, 0), (NOW, b"mno", 70, 3, 0, 2)]
    assert (left, problem) == (0, "")
    assert reader.notes() == ["1 packets carry no time: each got that of the packet before"]


COUNTED = {9: True, 0xBAD: True, 0x40000BAD: True, 0x204: True}
PASSED = [4, 7, 8, 10, 0x101, 0x201, 0x777, 0x80000001]


@pytest.mark.parametrize("kind", [*COUNTED, *PASSED])
@pytest.mark.parametrize("size", [0, 4, MAX_BLOCK + 4])
def test_other_blocks_are_passed_over_and_numbered_as_wireshark_does(kind, size):
    """Which of them have frame numbers was tried with TShark 4.0."""
    writer, data = started()
    data += writer.packet(NOW, b"a", 1) + writer.block(kind, b"\1" * size) + writer.packet(NOW, b"b", 1)
    found, _, left, problem = read(data)
    assert [(r[1], r[3]) for r in found] == [(b"a", 1), (b"b", 3 if kind in COUNTED else 2)]
    assert (left, problem) == (0, "")


def test_drops_of_the_capturing_host():
    writer, data = started()
    data += writer.interface("eth1")
    data += writer.statistics(0, NOW, 5) + writer.statistics(0, NOW, 7) + writer.statistics(1, NOW, 2)
    data += writer.statistics(0, NOW, 0).replace(b"\0\0\0\0", b"\7\0\0\0", 0)
    assert read(data)[1].notes() == ["the capturing host dropped 9 packets"]


def test_an_interface_that_is_not_described():
    writer, data = started()
    head = struct.pack("<IIIII", 0xFFFFFFFF, 0, 5, 1, 1)
    data += writer.packet(NOW, b"a", 1) + writer.block(6, head + b"b") + writer.packet(NOW, b"c", 1)
    assert [(r[1], r[3], r[4]) for r in read(data)[0]] == [(b"a", 1, 0), (b"b", 2, -1), (b"c", 3, 0)]


@pytest.mark.parametrize(
    "block",
    [
        struct.pack("<IIII", 6, 13, 0, 0),
        struct.pack("<IIII", 6, 8, 0, 0),
        struct.pack("<IIII", 6, 0xFFFFFFFC, 0, 0),
        struct.pack("<IIII", 1, 16, 0, 16),
        struct.pack("<II", 6, 28) + bytes(16) + struct.pack("<I", 28),
        struct.pack("<IIIIIIII", 6, 32, 0, 0, 0, 4, 4, 32),
        struct.pack("<III", 0x0A0D0D0A, 28, 0x12345678) + bytes(16),
        struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 9, 0, -1, 28),
        struct.pack("<IIIHHqI", 0x0A0D0D0A, 24, 0x1A2B3C4D, 1, 0, -1, 24),
    ],
)
def test_damage_ends_the_file_and_keeps_what_came_before(block):
    writer, data = started()
    data += writer.packet(NOW, b"a", 1)
    found, _, left, problem = read(data + block + bytes(100))
    assert len(found) == 1
    assert problem.startswith("after frame 1: a")
    assert left == len(block) + 100


def test_a_frame_longer_than_any_is_damage():
    writer, data = started()
    good = writer.packet(NOW, bytes(MAX_CAPTURED), MAX_CAPTURED)
    found, _, _, problem = read(data + good + writer.packet(NOW, bytes(MAX_CAPTURED + 1), 1))
    assert (len(found), problem) == (1, "after frame 1: a block has impossible lengths")


def test_another_length_at_the_end_of_a_block_is_told():
    writer, data = started()
    block = writer.packet(NOW, b"a", 1)
    data += block[:-4] + struct.pack("<I", 99) + writer.packet(NOW, b"b", 1)
    found, reader, *_ = read(data)
    assert len(found) == 2
    assert reader.notes() == ["1 blocks end with another length than they begin with"]


def test_a_cut_block_waits_for_more():
    writer, data = started()
    whole = data + writer.packet(NOW, b"abcdef", 6)
    for size in range(len(data), len(whole)):
        found, _, left, problem = read(whole[:size])
        assert (found, left, problem) == ([], size - len(data), "")


@pytest.mark.parametrize("length", [5, 8, 0xFFFF])
def test_options_with_hostile_lengths(length):
    writer, data = started()
    head = struct.pack("<IIIII", 0, NOW >> 32, NOW & 0xFFFFFFFF, 1, 1) + b"a\0\0\0"
    data += writer.block(6, head + struct.pack("<HH", 2, length) + b"\1\0\0\0")
    data += writer.block(1, struct.pack("<HHIHH", 1, 0, 0, 2, length))
    found, reader, left, problem = read(data + writer.packet(NOW, b"b", 1))
    assert [(r[1], r[5]) for r in found] == [(b"a", 0), (b"b", 0)]
    assert (left, problem, reader.interfaces[1].name) == (0, "", "")


def test_options_end_at_their_end_mark():
    data = struct.pack("<HH3sxHHHH", 1, 3, b"abc", 0, 0, 1, 0)
    assert list(options(data, "<")) == [(1, b"abc")]


def test_too_many_descriptions_are_hostile():
    writer, data = started()
    data += writer.statistics(0, NOW, 1) * (1 << 16)
    assert "more than 65536" in read(data)[3]


blocks = st.lists(
    st.one_of(
        st.tuples(st.just("packet"), st.binary(max_size=20), st.integers(0, 2)),
        st.tuples(st.just("other"), st.sampled_from([9, 4, 0x777]), st.binary(max_size=9)),
        st.tuples(st.just("section"), st.booleans(), st.sampled_from([6, 9, 0x94])),
        st.tuples(st.just("interface"), st.sampled_from(["a", "b"]), st.sampled_from([6, 9])),
    ),
    max_size=12,
)


@settings(max_examples=100, deadline=None)
@given(blocks, st.lists(st.integers(1, 60), min_size=1, max_size=4), st.integers(1, 3))
def test_any_split_gives_the_same_rows(parts, sizes, limit):
    writer, data = started()
    count = 1
    for kind, one, two in parts:
        if kind == "packet":
            data += writer.packet(NOW + len(data), one, len(one), count - 1, direction=two)
        elif kind == "other":
            data += writer.block(one, two)
        elif kind == "section":
            writer, more = started(one, resolution=two)
            data, count = data + more, 1
        else:
            data, count = data + writer.interface(one, resolution=two), count + 1
    whole, pieces = read(data), read(data, sizes, limit)
    assert whole[0] == pieces[0]
    assert whole[2:] == pieces[2:] == (0, "")
    assert whole[1].interfaces == pieces[1].interfaces


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_bytes_never_raise(data):
    writer, good = started()
    for k in range(4):
        good += writer.packet(NOW + k, bytes(k), k, direction=1) + writer.statistics(0, NOW, k)
    bad = bytearray(good)
    for _ in range(data.draw(st.integers(1, 6))):
        bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
    found, reader, *_ = read(bytes(bad[: data.draw(st.integers(0, len(bad)))]))
    assert all(0 <= r[0] <= LIMIT_NS for r in found)
    assert all(isinstance(n, str) for n in reader.notes())


def test_a_restored_state_walks_the_same_again():
    writer, data = started()
    data += writer.packet(NOW, b"a", 1) + writer.interface("eth1") + writer.statistics(1, NOW, 3)
    data += writer.packet(NOW, b"b", 1, 1)
    reader, rows = PcapngReader(), Rows(8)
    buf = np.frombuffer(data, np.uint8)
    state = reader.save()
    assert reader.walk(buf, 0, rows, 8).rows == 2
    reader.restore(state)
    assert (reader.interfaces, reader.notes()) == ([], [])
    first = reader.walk(buf, 0, rows, 1)
    assert (first.rows, len(reader.interfaces), reader.notes()) == (1, 1, [])
    assert reader.walk(buf, first.end, rows, 8).rows == 1
    assert (rows.frame[0], len(reader.interfaces)) == (2, 2)
