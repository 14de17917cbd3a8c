from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire.segments import Segment, chop, gloo_message, preamble, rows, run, same

ALL = ("ts_ns", "end_ns", "frame", "kind", "collective", "tag", "nbytes")


def test_fields_of_a_message_in_one_segment() -> None:
    tables, _ = run([Segment(gloo_message(1, 512, 4, 0x51), way=1, flow=3)])
    table = tables["messages"]
    assert rows(table, *ALL) == [(0, 0, 1, 1, 4, 0x51, 512)]
    assert rows(table, "flow", "way", "src", "dst", "framing") == [(3, 1, 7, 6, 1)]


def test_tag_is_32_bits_wide_and_the_delta_below_it_is_not_part_of_it() -> None:
    data = preamble(2, 64, 2, 0xFFFFFFFF, delta=0x00ABCD)
    tables, _ = run([Segment(data)])
    assert rows(tables["messages"], "collective", "tag", "nbytes") == [(2, 0xFFFFFFFF, 0)]


def test_message_over_many_segments_with_a_split_preamble() -> None:
    stream = gloo_message(2) + gloo_message(1, 3000, 6, 9) + gloo_message(3)
    tables, _ = run(chop(stream, [60, 500]))
    assert rows(tables["messages"], *ALL) == [
        (0, 0, 1, 2, 4, 7, 0),
        (0, 11_000_000, 1, 1, 6, 9, 3000),
        (11_000_000, 11_000_000, 12, 3, 4, 7, 0),
    ]


def test_snap_length_keeps_the_chain_by_lengths() -> None:
    data = gloo_message(1, 512)
    segments = [Segment(data, 1000, kept=48), Segment(gloo_message(2), 1560, kept=48)]
    tables, _ = run(segments)
    assert rows(tables["messages"], "kind", "nbytes", "end_ns") == [(1, 512, 0), (2, 0, 1_000_000)]


def test_preamble_in_uncaptured_bytes_is_not_invented() -> None:
    two = gloo_message(2) + gloo_message(1, 512, 4, 8)  # the second preamble lies behind the snap length
    segments = [Segment(two, 1000, kept=48), Segment(gloo_message(3, tag=9), 1000 + len(two), kept=48)]
    tables, _ = run(segments)
    assert rows(tables["messages"], "kind", "tag") == [(2, 7), (3, 9)]


def test_preamble_cut_behind_the_slot_still_names_its_message() -> None:
    segments = [Segment(gloo_message(1, 512, tag=k), 1000 + 560 * k, kept=28) for k in range(3)]
    tables, _ = run(segments)
    assert rows(tables["messages"], "tag", "nbytes") == [(0, 512), (1, 512), (2, 512)]


def test_capture_starts_in_mid_message() -> None:
    stream = gloo_message(1, 1000, tag=1) + gloo_message(2, tag=2)
    tables, _ = run([Segment(stream[500:1048], 500), Segment(stream[1048:], 1048)])
    assert rows(tables["messages"], "tag") == [(2,)]


def test_hole_inside_a_payload_leaves_the_chain_whole() -> None:
    stream = gloo_message(1, 2000, tag=1) + gloo_message(1, 100, tag=2)
    segments = chop(stream, [500])
    del segments[2]
    tables, _ = run([*segments, Segment(way=1, ack=1000 + len(stream))])
    assert rows(tables["messages"], "tag", "nbytes") == [(1, 2000), (2, 100)]
    assert rows(tables["holes"], "seq", "nbytes") == [(2000, 500)]


def test_message_that_ends_in_a_hole_has_no_end_time() -> None:
    stream = gloo_message(1, 952, tag=1) + gloo_message(1, 100, tag=2)
    segments = [Segment(stream[:500], 1000), Segment(stream[1000:], 2000)]
    tables, _ = run(segments)
    assert rows(tables["messages"], "tag", "end_ns") == [(1, 0), (2, 1_000_000)]


def test_open_message_is_given_at_the_end() -> None:
    tables, _ = run([Segment(gloo_message(1, 5000)[:900], ts=77)])
    assert rows(tables["messages"], "ts_ns", "end_ns", "nbytes") == [(77, 0, 5000)]


def test_lost_chain_is_found_again_inside_a_segment_of_a_known_flow() -> None:
    start = b"".join(gloo_message(2, tag=k) for k in range(6))
    lost = gloo_message(1, 400, tag=90)
    later = b"\x33" * 100 + gloo_message(1, 64, tag=91)
    segments = [
        Segment(start, 1000),
        Segment(lost[:20], 1000 + len(start)),  # the rest of this preamble is missing
        Segment(later, 1000 + len(start) + 448 - 100),
    ]
    tables, _ = run(segments)
    assert rows(tables["messages"], "tag")[-1] == (91,)


message = st.builds(
    gloo_message, st.integers(0, 3), st.integers(0, 300), st.integers(0, 8), st.integers(0, 2**32 - 1)
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(message, min_size=1, max_size=8),
    st.lists(st.integers(1, 400), min_size=1, max_size=5),
    st.lists(st.integers(0, 100), max_size=5),
    st.sampled_from([None, 48, 60]),
    st.randoms(use_true_random=False),
)
def test_any_split_gives_the_same_tables(messages, sizes, cuts, kept, rng) -> None:  # type: ignore[no-untyped-def]
    segments = chop(b"".join(messages), sizes, kept=kept)
    rng.shuffle(segments)
    whole, _ = run(segments)
    assert same(whole, run(segments, cuts)[0])
    assert same(whole, run(segments, range(len(segments)))[0])


@settings(max_examples=60, deadline=None)
@given(st.lists(message, min_size=1, max_size=8), st.lists(st.integers(48, 400), min_size=1, max_size=5))
def test_every_message_of_a_whole_capture_is_found(messages: list[bytes], sizes: list[int]) -> None:
    tables, _ = run(chop(b"".join(messages), sizes))
    assert tables["messages"]["nbytes"].tolist() == [len(m) - 48 for m in messages]
