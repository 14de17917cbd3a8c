"""ZeroMQ: greetings, frames short and long, commands, messages of several frames, holes, noise."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire.segments import Segment, chop, rows, run, same

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(16) + b"\x00" + bytes(31)
READY = b"\x04\x1a\x05READY\x0bSocket-Type\x00\x00\x00\x04XPUB"
SUBSCRIBE = b"\x04\x0a\x09SUBSCRIBE"
COLUMNS = ("framing", "kind", "nbytes", "ts_ns", "end_ns")


def frame(body: bytes, more: bool = False) -> bytes:
    """Return a message frame."""
    if len(body) > 255:
        return bytes([2 | more]) + len(body).to_bytes(8, "big") + body
    return bytes([int(more), len(body)]) + body


def found(segments, *columns, **more):
    """Return the messages of some segments."""
    return rows(run(segments, **more)[0]["messages"], *(columns or ("framing", "nbytes")))


def test_messages_behind_a_greeting():
    assert len(GREETING) == 64
    stream = GREETING + READY + frame(b"x" * 10) + frame(b"y" * 3000) + frame(b"")
    assert found(chop(stream, [10, 64, 90])) == [(4, 10), (4, 3000), (4, 0)]


def test_a_message_of_several_frames_is_one_from_first_to_last_byte():
    stream = [GREETING + READY, frame(b"topic", True), frame(b"z" * 600, True), frame(b"end")]
    segments, seq = [], 1000
    for part in stream:
        segments.append(Segment(part, seq))
        seq += len(part)
    assert found(segments, *COLUMNS) == [(4, 0, 608, 1_000_000, 3_000_000)]


def test_commands_between_frames_of_a_message_count_for_nothing():
    stream = GREETING + READY + SUBSCRIBE + frame(b"a", True) + frame(b"bc")
    assert found(chop(stream, [1460])) == [(4, 3)]


def test_both_directions():
    segments = [
        Segment(GREETING, 1000, 0),
        Segment(GREETING + READY, 5000, 1),
        Segment(READY + frame(b"abcd"), 1064, 0),
        Segment(frame(b"e"), 5000 + 64 + len(READY), 1),
    ]
    assert found(segments, "way", "nbytes") == [(0, 4), (1, 1)]


def test_older_versions_and_near_misses_are_not_taken_for_it():
    for wrong in (
        b"\xff" + bytes(8) + b"\x7f\x01" + bytes(53),
        b"\xff" + bytes(7) + b"\x01\x00\x03" + bytes(53),
        b"\xff" + bytes(8) + b"\x7f\x03" + b"\x01" * 53,
    ):
        assert found(chop(wrong + frame(b"abc") * 20, [1460])) == []


def test_snap_length_passes_bodies_and_comes_back_at_a_frame():
    big = frame(b"q" * 1000)
    first = GREETING + READY
    segments = [Segment(first, 1000)]
    seq = 1000 + len(first)
    for body in (big, big, frame(b"w" * 20)):
        segments.append(Segment(body, seq, kept=48))
        seq += len(body)
    assert found(segments) == [(4, 1000), (4, 1000), (4, 20)]


def test_a_hole_in_a_header_loses_the_chain_until_a_segment_is_one_frame():
    first = GREETING + READY + frame(b"a" * 8)
    more = [frame(b"b" * 30), frame(b"c" * 40), frame(b"d" * 50)]
    segments, seq = [Segment(first, 1000)], 1000 + len(first)
    for k, body in enumerate(more):
        if k != 0:
            segments.append(Segment(body, seq))
        seq += len(body)
    segments.append(Segment(b"", 9000, 1, ack=seq))
    assert found(segments) == [(4, 8), (4, 40), (4, 50)]


def test_a_message_under_way_at_the_end_has_no_end():
    stream = GREETING + READY + frame(b"x" * 100)[:50]
    assert found(chop(stream, [1460]), "nbytes", "end_ns") == [(100, 0)]


def test_an_impossible_length_loses_the_chain():
    stream = GREETING + READY + b"\x02" + b"\xff" * 8 + frame(b"abc")
    assert found(chop(stream, [1460])) == []


@given(
    st.lists(st.tuples(st.binary(max_size=400), st.booleans()), max_size=12),
    st.lists(st.integers(10, 4000), max_size=8),
    st.lists(st.integers(0, 30), max_size=4),
)
@settings(max_examples=60, deadline=None)
def test_any_split_gives_the_same_messages(frames, cuts, feeds):
    stream = GREETING + READY + b"".join(frame(body, more) for body, more in frames)
    want, size = [], 0
    for body, more in frames:
        size += len(body)
        if not more:
            want.append((4, size))
            size = 0
    whole, _ = run(chop(stream, [1460]))
    got = found(chop(stream, cuts or [700]), cuts=feeds)
    assert got[: len(want)] == want
    assert len(got) <= len(want) + 1
    assert len(rows(whole["messages"], "nbytes")) == len(got) or frames[-1][1]


@given(st.binary(min_size=0, max_size=1500), st.lists(st.integers(1, 1500), max_size=6), st.integers(0, 20))
@settings(max_examples=60, deadline=None)
def test_any_bytes_behind_a_greeting_are_survived(noise, cuts, feed):
    segments = chop(GREETING + noise, cuts or [700])
    one, other = run(segments)[0], run(segments, [feed])[0]
    assert same(one, other)
