"""NCCL over sockets: greetings, sizes, several sockets, connections older than the capture, holes, noise."""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from skewscope.core.directory import Directory
from skewscope.sources.captures import open_captures
from skewscope.wire.build import nccl_hello, nccl_writes
from skewscope.wire.nccl import CHAIN, MAX_MESSAGE_BYTES
from skewscope.wire.streams import StreamFramer
from tests.wire.segments import Segment, chop, packets, rows, run, same

COLUMNS = ("framing", "kind", "nbytes", "ts_ns", "end_ns")


def writes(*pieces: bytes, seq: int = 1000, mss: int = 1448, **fields: int) -> list[Segment]:
    """Return the segments of socket writes: each begins one, as without delay."""
    out: list[Segment] = []
    for piece in pieces:
        out += chop(piece, [mss], seq=seq, **fields)
        seq += len(piece)
    return out


def stream(*sizes: int) -> list[bytes]:
    """Return the writes of messages of these sizes."""
    return [w for n in sizes for w in nccl_writes(bytes([0xA5]) * n)]


def found(segments, *columns, **more):
    """Return the messages of some segments."""
    return rows(run(segments, **more)[0]["messages"], *(columns or ("framing", "nbytes")))


def protocol(segments) -> str:
    framer = StreamFramer(Directory())
    framer.feed(*packets(segments))
    return framer.protocols().get(1, "")


def test_messages_behind_a_greeting_short_and_long():
    segments = writes(nccl_hello(), *stream(16, 128, 129, 5000, 300_000))
    assert found(segments) == [(2, n) for n in (16, 128, 129, 5000, 300_000)]


def test_the_greeting_may_come_in_three_segments():
    hello = nccl_hello()
    assert found(writes(hello[:8], hello[8:12], hello[12:], *stream(4000, 4000))) == [(2, 4000)] * 2


def test_a_message_lasts_from_its_size_to_its_last_byte():
    segments = writes(nccl_hello(), *stream(2000, 64))
    assert found(segments, *COLUMNS) == [
        (2, 0, 2000, 1_000_000, 3_000_000),
        (2, 0, 64, 4_000_000, 4_000_000),
    ]


def test_sizes_glued_to_the_data_before_them_are_found_once_the_first_was_alone():
    first, *rest = stream(3000, 700, 90_000, 20)
    assert found(writes(nccl_hello(), first, b"".join(rest))) == [(2, n) for n in (3000, 700, 90_000, 20)]


def test_with_several_sockets_the_control_socket_says_the_sizes_and_data_sockets_say_nothing():
    control = [nccl_hello(2), *(struct.pack("<I", n) for n in (70_000, 200_000)), *nccl_writes(b"x" * 90)]
    assert found(writes(*control)) == [(2, 70_000), (2, 200_000), (2, 90)]
    random_bytes = random.Random(3).randbytes(140_000)
    for data in (random_bytes, bytes(140_000), struct.pack("<200I", *range(1, 201)) * 100):
        segments = writes(nccl_hello(0), data)
        assert found(segments) == []
        assert protocol(segments) == "nccl"


def test_sockets_of_other_kinds_make_no_messages():
    assert found(writes(nccl_hello(0, kind=4), *stream(4000, 4000, 4000))) == []


def test_a_connection_begun_before_the_capture_is_known_after_a_chain_of_sizes():
    sizes = [4096] * 12 + [200_000, 64, 4096]
    segments = writes(*stream(*sizes))
    assert protocol(segments) == "nccl"
    assert found(segments) == [(2, n) for n in sizes[CHAIN - 1 :]]
    cut_in_body = segments[1:]
    assert found(cut_in_body) == [(2, n) for n in sizes[CHAIN:]]


def test_the_snap_length_may_cut_off_the_data():
    assert found(writes(*stream(*[4096] * 12), kept=40)) == [(2, 4096)] * (12 - CHAIN + 1)


def test_a_peer_that_answers_is_no_acceptor_of_nccl():
    asked = writes(*stream(*[4096] * 20))
    answered = [Segment(b"fine", 5000, 1), *asked]
    assert found(answered) == []
    assert protocol(answered) != "nccl"


@pytest.mark.parametrize(
    "pieces",
    [
        [struct.pack(">I", 4096), b"y" * 4096] * 20,
        [struct.pack("<I", 4096) + b"y" * 4096] * 20,
        [struct.pack("<I", 4100), b"y" * 4096] * 20,
        [struct.pack("<I", 40) + b"y" * 40] * 60,
        [struct.pack("<I", MAX_MESSAGE_BYTES + 1)] * 60,
        [struct.pack("<Q", 4096), b"y" * 4096] * 20,
        [bytes(4)] * 60,
    ],
    ids=["big-endian", "one write", "inclusive", "short", "huge", "eight bytes", "zeros"],
)
def test_other_length_prefixes_are_not_taken_for_it(pieces):
    assert found(writes(*pieces)) == []


def test_behind_a_hole_a_size_alone_in_its_segment_leads_in_again():
    sizes = [4096] * 6
    segments = writes(nccl_hello(), *stream(*sizes))
    lost = segments[6]  # in the second message
    end = segments[-1].seq + len(segments[-1].data)
    kept = [s for s in segments if s is not lost]
    assert found([*kept, Segment(b"", 9000, 1, ack=end)]) == [(2, n) for n in sizes]
    size = next(s for s in segments[8:] if len(s.data) == 4)
    kept = [s for s in segments if s is not size]
    assert len(found([*kept, Segment(b"", 9000, 1, ack=end)])) == 5


def test_a_message_under_way_at_the_end_has_no_end():
    assert found(writes(nccl_hello(), *stream(4000))[:-1], "nbytes", "end_ns") == [(4000, 0)]


def test_a_greeting_with_another_magic_or_kind_is_none():
    for wrong in (nccl_hello(0, kind=9), b"\x6c" + bytes(12), nccl_hello()[::-1]):
        assert found(writes(wrong, *stream(4000, 4000, 4000))) == []


@given(
    st.lists(st.integers(0, 6000), min_size=1, max_size=12),
    st.lists(st.integers(4, 4000), max_size=8),
    st.lists(st.integers(0, 40), max_size=4),
)
@settings(max_examples=60, deadline=None)
def test_any_split_behind_the_first_size_gives_the_same_messages(sizes, cuts, feeds):
    first, *rest = stream(*sizes)
    segments = writes(nccl_hello(), first)
    tail = chop(b"".join(rest), cuts or [1448], seq=1013 + len(first)) if rest else []
    assert found([*segments, *tail], cuts=feeds) == [(2, n) for n in sizes]


@given(
    st.binary(max_size=2000), st.lists(st.integers(1, 1500), max_size=6), st.integers(0, 20), st.booleans()
)
@settings(max_examples=80, deadline=None)
def test_any_bytes_are_survived_and_tables_do_not_depend_on_the_feeds(noise, cuts, feed, greeted):
    segments = chop(nccl_hello() + noise if greeted else noise, cuts or [700])
    assert same(run(segments)[0], run(segments, [feed])[0])


@given(st.lists(st.binary(min_size=1, max_size=400), min_size=1, max_size=60))
@settings(max_examples=100, deadline=None)
def test_random_writes_are_never_taken_for_it(pieces):
    assume(not pieces[0].startswith(nccl_hello()[:8]))
    assert 2 not in [framing for framing, _ in found(writes(*pieces))]


SAMPLES = os.environ.get("SKEWSCOPE_SAMPLES", "")


@pytest.mark.samples
@pytest.mark.skipif(not SAMPLES, reason="SKEWSCOPE_SAMPLES names no folder with recorded captures")
def test_recorded_captures_hold_none_of_it():
    paths = sorted(p for p in Path(SAMPLES).rglob("*") if ".pcap" in p.name and p.is_file())
    messages = {1: 0, 2: 0}
    for path in paths:
        for capture in open_captures([path], Directory(), lambda problem: None):
            for tables in capture.batches():
                for framing in messages:
                    messages[framing] += int((tables["messages"]["framing"] == framing).sum())
            capture.close()
    assert messages[1] > 100_000
    assert messages[2] == 0
