"""Classic pcap: every header variant, damage, and any split of the bytes."""

import io
import itertools
import struct

import dpkt
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.wire.formats import MAX_CAPTURED
from skewscope.wire.pcap import HEADER_BYTES, PcapReader, parse_header, walk_records
from skewscope.wire.records import Rows

VARIANTS = [("<", 1_000, 0xA1B2C3D4), (">", 1_000, 0xA1B2C3D4), ("<", 1, 0xA1B23C4D), (">", 1, 0xA1B23C4D)]


def header(order, magic, snap=262144, link=1):
    return struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap, link)


def record(order, second, fraction, data, wire=None):
    size = len(data) if wire is None else wire
    return struct.pack(order + "IIII", second, fraction, len(data), size) + data


def walk(data, big=False, unit=1, rows=64):
    """Return (rows as tuples, bytes consumed, damage)."""
    ts, at, captured, wire = (np.zeros(rows, dtype=np.int64) for _ in range(4))
    buf = np.frombuffer(data, np.uint8)
    n, used, damage = walk_records(buf, 0, big, unit, 16, ts, at, captured, wire)
    return list(zip(*(c[:n].tolist() for c in (ts, at, captured, wire)), strict=True)), used, damage


@pytest.mark.parametrize(("order", "unit", "magic"), VARIANTS)
def test_every_byte_order_and_unit(order, unit, magic):
    found = parse_header(header(order, magic, snap=96, link=113))
    assert found is not None
    assert (found.big_endian, found.unit_ns, found.snap_length, found.link_type) == (
        order == ">",
        unit,
        96,
        113,
    )
    data = record(order, 1_700_000_000, 123_456, b"abcd", wire=1500)
    rows, used, damage = walk(data, found.big_endian, unit)
    assert rows == [(1_700_000_000_000_000_000 + 123_456 * unit, 16, 4, 1500)]
    assert (used, damage) == (20, 0)


@pytest.mark.parametrize("order", ["<", ">"])
def test_another_reader_agrees(order):
    data = header(order, 0xA1B2C3D4) + record(order, 5, 7, b"x" * 60) + record(order, 6, 8, b"y" * 61)
    rows, _, _ = walk(data[HEADER_BYTES:], order == ">", 1_000)
    other = [(round(ts * 1e9), len(frame)) for ts, frame in dpkt.pcap.Reader(io.BytesIO(data))]
    assert [(ts, kept) for ts, _, kept, _ in rows] == other


def test_upper_bits_of_the_link_type_say_something_else():
    """FCS length and reserved bits share the field with the link type."""
    for bits in (0x4000_0000, 0x2400_0000, 0x03FF_0000):
        found = parse_header(header("<", 0xA1B2C3D4, link=1 | bits))
        assert found is not None
        assert found.link_type == 1


@pytest.mark.parametrize("number", [12, 14])
def test_raw_ip_has_had_other_numbers(number):
    found = parse_header(header("<", 0xA1B2C3D4, link=number))
    assert found is not None
    assert found.link_type == 101


@pytest.mark.parametrize("order", ["<", ">"])
def test_the_modified_variant_has_longer_record_headers(order):
    data = header(order, 0xA1B2CD34, snap=0x7FFFFFFF)
    for i in range(3):
        extra = struct.pack(order + "IHBB", 2, 0x0800, 4, 0)
        data += struct.pack(order + "IIII", i, 5, 4, 60) + extra + b"%4d" % i
    found = parse_header(data)
    assert found is not None
    rows = Rows(8)
    reader = PcapReader(found)
    buf = np.frombuffer(data, np.uint8)
    done = reader.walk(buf, HEADER_BYTES, rows, 8)
    assert (done.rows, done.end, done.problem) == (3, len(data), "")
    assert rows.ts[:3].tolist() == [i * 1_000_000_000 + 5_000 for i in range(3)]
    assert [data[a : a + 4] for a in rows.at[:3]] == [b"   0", b"   1", b"   2"]
    assert rows.frame[:3].tolist() == [1, 2, 3]


def test_a_reader_numbers_frames_over_walks_and_goes_back():
    head = parse_header(header("<", 0xA1B2C3D4))
    assert head is not None
    reader, rows = PcapReader(head), Rows(4)
    buf = np.frombuffer(b"".join(record("<", i, 0, b"ab") for i in range(5)), np.uint8)
    first = reader.walk(buf, 0, rows, 2)
    state = reader.save()
    for _ in range(2):
        reader.restore(state)
        assert reader.walk(buf, first.end, rows, 4).rows == 3
        assert rows.frame[:3].tolist() == [3, 4, 5]


@pytest.mark.parametrize(
    "data", [b"", b"\xd4\xc3\xb2", b"GET / HTTP/1.1\r\nHost: engine\r\n\r\n", b"\x00" * 40]
)
def test_other_bytes_are_no_header(data):
    assert parse_header(data) is None


def test_a_cut_header_is_none():
    assert parse_header(header("<", 0xA1B2C3D4)[:20]) is None


def test_a_cut_record_header_or_body_waits_for_more():
    whole = record("<", 1, 2, b"first") + record("<", 3, 4, b"second")
    for size in range(len(whole)):
        rows, used, damage = walk(whole[:size])
        assert damage == 0
        assert len(rows) == (1 if size >= 21 else 0)
        assert used == (21 if size >= 21 else 0)


@pytest.mark.parametrize("length", [MAX_CAPTURED + 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_an_impossible_length_ends_the_walk_and_keeps_what_came_before(length):
    data = record("<", 1, 2, b"good") + struct.pack("<IIII", 3, 4, length, length) + b"z" * 100
    rows, used, damage = walk(data)
    assert (len(rows), used, damage) == (1, 20, 1)


def test_the_longest_allowed_record_is_read():
    rows, _, damage = walk(record("<", 1, 2, b"\0" * MAX_CAPTURED))
    assert (rows[0][2], damage) == (MAX_CAPTURED, 0)


def test_hostile_times_stay_within_int64():
    rows, _, _ = walk(record("<", 0xFFFFFFFF, 0xFFFFFFFF, b"", wire=0xFFFFFFFF), unit=1_000)
    assert rows == [(0xFFFFFFFF * (1_000_000_000 + 1_000), 16, 0, 0xFFFFFFFF)]


def test_full_columns_stop_the_walk():
    data = b"".join(record("<", i, 0, b"ab") for i in range(5))
    rows, used, _ = walk(data, rows=3)
    assert (len(rows), used) == (3, 54)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 999_999_999), st.binary(max_size=40)), max_size=12
    ),
    st.lists(st.integers(0, 800), max_size=6),
    st.booleans(),
)
def test_any_split_gives_the_same_records(records, cuts, big):
    order = ">" if big else "<"
    data = b"".join(record(order, *r) for r in records)
    whole, used, _ = walk(data, big)
    assert used == len(data)
    edges = sorted({0, len(data), *(c for c in cuts if c < len(data))})
    found, pending = [], b""
    for lo, hi in itertools.pairwise(edges):
        pending += data[lo:hi]
        rows, used, damage = walk(pending, big)
        assert damage == 0
        found += [(ts, kept, wire) for ts, _, kept, wire in rows]
        pending = pending[used:]
    assert pending == b""
    assert found == [(ts, kept, wire) for ts, _, kept, wire in whole]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300), st.booleans())
def test_random_bytes_never_raise_and_stay_inside_the_buffer(data, big):
    rows, used, _ = walk(data, big, 1_000)
    assert 0 <= used <= len(data)
    assert all(at + kept <= used for _, at, kept, _ in rows)
