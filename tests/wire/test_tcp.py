"""Reassembly, seen through Gloo messages (what was delivered) and holes (what was not)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.core.directory import Directory
from skewscope.wire.streams import Limits, StreamFramer
from tests.wire.segments import (
    FIN,
    RST,
    SYN,
    Segment,
    chop,
    gloo_message,
    packets,
    preamble,
    rows,
    run,
    same,
)

STREAM = b"".join(gloo_message(1, 100 + k, tag=k) for k in range(12))


def tags(segments: list[Segment], limits: Limits | None = None) -> list[int]:
    tables, _ = run(segments, limits=limits)
    return tables["messages"]["tag"].tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("seq", [1000, 2**32 - 700, 2**32 - 1, 2**31 - 300])
def test_reordered_segments_are_put_in_order_also_across_the_wrap(seq: int) -> None:
    segments = chop(STREAM, [148], seq=seq)
    order = [0, 3, 2, 1, 4, 7, 5, 6, *range(8, len(segments))]
    assert tags([segments[k] for k in order]) == list(range(12))


def test_retransmissions_and_overlaps_add_nothing() -> None:
    segments = chop(STREAM, [200])
    again = [Segment(STREAM[at : at + 300], 1000 + at) for at in (0, 150, 100, 700)]
    assert tags([segments[0], again[0], segments[1], again[2], *segments[2:], again[3]]) == list(range(12))


def test_first_copy_wins() -> None:
    first, later = gloo_message(1, 100, tag=1), gloo_message(1, 100, tag=2)
    start = gloo_message(2, tag=0)
    segments = [
        Segment(start, 1000),
        Segment(first[60:], 1048 + 60),  # held behind a gap
        Segment(later, 1048),  # covers it: its beginning counts, its end does not
        Segment(later, 1048),
    ]
    assert tags(segments) == [0, 2]
    held_first = [Segment(start, 1000), Segment(first[8:], 1056), Segment(later, 1048)]
    assert tags(held_first) == [0, 1]


def test_gap_waits_for_its_bytes_until_the_other_side_acknowledges_beyond() -> None:
    segments = chop(STREAM, [148])
    late = segments.pop(1)
    acked = Segment(way=1, ack=1148)
    assert tags([*segments, acked, late]) == list(range(12))
    tables, _ = run([*segments[:4], Segment(way=1, ack=1148 + 148), *segments[4:], late])
    assert rows(tables["holes"], "ts_ns", "way", "seq", "nbytes") == [(4_000_000, 0, 1148, 148)]
    assert tables["messages"]["tag"].tolist() != list(range(12))


def test_no_acknowledgement_for_bytes_of_the_future_makes_a_hole() -> None:
    segments = chop(STREAM, [148])
    ahead = Segment(way=1, ack=1000 + 5 * 148)  # a second queue delivered the ACK before the data
    assert tags([segments[0], ahead, *segments[1:]]) == list(range(12))
    assert len(run([segments[0], ahead, *segments[1:]])[0]["holes"]) == 0


@pytest.mark.parametrize(
    "limits",
    [Limits(held_segments=3), Limits(held_bytes=600), Limits(total_bytes=600), Limits(age_ns=3_000_000)],
)
def test_limits_end_the_waiting(limits: Limits) -> None:
    segments = chop(STREAM, [148])
    del segments[1]
    tables, _ = run(segments, limits=limits)
    assert rows(tables["holes"], "seq", "nbytes") == [(1148, 148)]
    assert 0 < tables["holes"]["ts_ns"][0] < 7_000_000


def test_hole_at_the_end_of_the_capture() -> None:
    segments = chop(STREAM, [148])
    tables, _ = run([*segments[:3], segments[4], Segment(way=1, ack=1000 + len(STREAM))])
    assert rows(tables["holes"], "seq", "nbytes") == [(1444, 148), (1740, len(STREAM) - 740)]


def test_acknowledged_fin_that_was_not_captured_is_no_hole() -> None:
    tables, _ = run([*chop(STREAM, [300]), Segment(way=1, ack=1000 + len(STREAM) + 1)])
    assert len(tables["holes"]) == 0


def test_connection_from_its_syn_to_its_fin() -> None:
    size = len(STREAM)
    segments = [
        Segment(seq=999, flags=SYN),
        Segment(seq=5000, way=1, flags=SYN, ack=1000),
        Segment(seq=999, flags=SYN),
        *chop(STREAM, [500]),
        Segment(seq=1000 + size, flags=FIN, ack=5001),
        Segment(seq=5001, way=1, flags=FIN, ack=1001 + size),
        Segment(seq=1000 + size, flags=FIN, ack=5002),
    ]
    tables, _ = run(segments)
    assert tables["messages"]["tag"].tolist() == list(range(12))
    assert len(tables["holes"]) == 0


def test_port_reuse_starts_anew() -> None:
    other = [Segment(seq=2**31 + 5, flags=SYN), *chop(STREAM, [500], seq=2**31 + 6)]
    first = [Segment(seq=999, flags=SYN), *chop(STREAM, [500])]
    for end in ([], [Segment(seq=1000 + len(STREAM), flags=RST)]):
        tables, _ = run([*first, *end, *other])
        assert tables["messages"]["tag"].tolist() == 2 * list(range(12))
        assert len(tables["holes"]) == 0


def test_port_reuse_without_a_captured_syn() -> None:
    sizes = [148 + k for k in range(12)]  # one segment a message
    again = chop(STREAM, sizes, seq=2**31 + 2**30)
    assert tags([*chop(STREAM, sizes), *again])[12:] == list(range(2, 12))


def test_keep_alive_before_the_first_data_makes_no_hole() -> None:
    keep_alive = Segment(seq=999, ack=5)
    tables, _ = run([keep_alive, *chop(STREAM, [300]), Segment(way=1, seq=5, ack=1000 + len(STREAM))])
    assert tables["messages"]["tag"].tolist() == list(range(12))
    assert len(tables["holes"]) == 0


def test_absurd_segment_does_not_end_a_live_stream() -> None:
    segments = chop(STREAM, [148])
    absurd = Segment(b"x" * 10, 2**30)
    tables, _ = run([*segments[:3], absurd, *segments[3:]], limits=Limits(age_ns=2_000_000))
    assert tables["messages"]["tag"].tolist() == list(range(12))
    assert len(tables["holes"]) == 0


def test_flows_beyond_the_limit_make_room_and_are_found_again() -> None:
    segments = [
        Segment(gloo_message(2, tag=10 * k + flow), 1000 + 48 * k, flow=flow)
        for k in range(3)
        for flow in range(1, 6)
    ]
    tables, _ = run(segments, limits=Limits(flows=2))
    assert sorted(tables["messages"]["tag"].tolist()) == sorted(
        10 * k + f for k in range(3) for f in range(1, 6)
    )
    table, buffer = packets(segments)
    framer = StreamFramer(Directory(), Limits(flows=2))
    framer.feed(table, buffer)
    assert framer.counters()["flows_evicted"] == 13


segment = st.builds(
    Segment,
    data=st.one_of(st.binary(max_size=60), st.just(STREAM[:300]), st.just(preamble(1, 2**33))),
    seq=st.one_of(st.integers(0, 400), st.integers(0, 2**32 - 1)),
    way=st.integers(0, 1),
    ack=st.one_of(st.none(), st.integers(0, 500), st.integers(0, 2**32 - 1)),
    flags=st.one_of(st.just(0), st.integers(0, 255)),
    flow=st.integers(0, 4),
    kept=st.one_of(st.none(), st.integers(0, 60)),
    ts=st.one_of(st.none(), st.integers(-(2**62), 2**62)),
)
LIMITS = st.sampled_from([None, Limits(2, 3, 400, 900, 1000, 1000), Limits(1, 1, 1, 1, 1, 1)])


@settings(max_examples=150, deadline=None)
@given(st.lists(segment, max_size=40), st.lists(st.integers(0, 50), max_size=6), LIMITS)
def test_hostile_packets_never_raise_and_any_split_gives_the_same(segments, cuts, limits) -> None:  # type: ignore[no-untyped-def]
    whole, _ = run(segments, limits=limits)
    assert same(whole, run(segments, cuts, limits)[0])
    assert same(whole, run(segments, range(len(segments)), limits)[0])


def reference(segments: list[Segment]) -> bytes:
    """A slow oracle: a byte map in which the first copy wins, read from the first byte on."""
    got: dict[int, int] = {}
    for s in segments:
        for k, c in enumerate(s.data):
            got.setdefault(s.seq + k, c)
    out = bytearray()
    while 1000 + len(out) in got:
        out.append(got[1000 + len(out)])
    return bytes(out)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_reassembly_agrees_with_a_byte_map(data: st.DataObject) -> None:
    pieces = data.draw(
        st.lists(st.tuples(st.integers(0, 1500), st.integers(1, 400)), max_size=30), label="offset, size"
    )
    first = Segment(STREAM[:10], 1000)
    rng = np.random.default_rng(len(pieces))
    segments = [first, *chop(STREAM, [148])]
    segments += [Segment(STREAM[at : at + n], 1000 + at) for at, n in pieces if at < len(STREAM)]
    order = [0, *(1 + rng.permutation(len(segments) - 1))]
    shuffled = [segments[k] for k in order]
    assert reference(shuffled) == STREAM
    tables, _ = run([Segment(gloo_message(2, tag=99), 952), *shuffled])
    assert tables["messages"]["tag"].tolist() == [99, *range(12)]
    assert len(tables["holes"]) == 0
