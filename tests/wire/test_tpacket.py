"""Blocks of a packet ring, made by hand after the kernel's header file."""

import struct

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skewscope.wire.tpacket import walk_block

MAC = 82
"""Offset of the frame from its header: 48 bytes of header, link-layer address, alignment."""


def block(frames, first=48, size=4096):
    """Return a block of (ts_ns, frame, wire length); shape (size,)."""
    raw = bytearray(size)
    struct.pack_into("<IIIIIIQ", raw, 0, 1, 48, 1, len(frames), first, size, 7)
    at = first
    for k, (ts, data, wire) in enumerate(frames):
        step = (MAC + len(data) + 7) // 8 * 8
        last = k + 1 == len(frames)
        head = (0 if last else step, ts // 10**9, ts % 10**9, len(data), wire, 0, MAC, MAC + 14)
        struct.pack_into("<IIIIIIHH", raw, at, *head)
        raw[at + MAC : at + MAC + len(data)] = data
        at += step
    return np.frombuffer(bytes(raw), dtype=np.uint8)


def walk(data, room=100):
    columns = [np.zeros(room, np.int64) for _ in range(4)]
    n = walk_block(data, *columns)
    return n, [c[:n].tolist() for c in columns]


def test_packets_of_a_block_are_found_with_their_times_and_lengths():
    data = block([(1_796_047_362_584_615_200, b"abc", 60), (5_000_000_001, b"defgh", 1514)])
    n, (ts, at, captured, wire) = walk(data)
    assert n == 2
    assert ts == [1_796_047_362_584_615_200, 5_000_000_001]
    assert [data[a : a + c].tobytes() for a, c in zip(at, captured, strict=True)] == [b"abc", b"defgh"]
    assert wire == [60, 1514]


def test_no_more_rows_than_there_is_room_for():
    assert walk(block([(1, b"a", 1)] * 5), room=3)[0] == 3


def test_an_empty_block_has_no_packets():
    assert walk(block([]))[0] == 0


@given(st.binary(min_size=64, max_size=400), st.integers(0, 10))
def test_bytes_that_are_no_block_never_lead_outside_it(raw, room):
    data = np.frombuffer(raw, dtype=np.uint8)
    n, (_, at, captured, _) = walk(data, room)
    assert n <= room
    assert all(a >= 0 and a + c <= len(raw) for a, c in zip(at, captured, strict=True))
