from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.wire.segments import Segment, chop, rows, run, same, tls_record

RECORDS = [tls_record(22, 300), tls_record(20, 1), tls_record(23, 0), tls_record(23, 4000), tls_record(21, 2)]
STREAM = b"".join(RECORDS)


@pytest.mark.parametrize("kept", [None, 48])
def test_records_by_size_and_end_time(kept: int | None) -> None:
    segments = [Segment(RECORDS[0], 0), *chop(b"".join(RECORDS[1:]), [6, 5, 1000], seq=305, kept=kept)]
    tables, _ = run(segments)
    seen = [(22, 300), (20, 1), (23, 0), (23, 4000)] + ([(21, 2)] if kept is None else [])  # header cut off
    assert rows(tables["records"], "kind", "nbytes") == seen
    assert tables["records"]["frame"].tolist()[:3] == [1, 2, 3]


def test_header_in_uncaptured_bytes_is_not_invented_and_the_next_segment_start_is_taken() -> None:
    two = tls_record(23, 60) + tls_record(23, 500)
    tables, _ = run([Segment(two, 0, kept=48), Segment(tls_record(23, 70), len(two), kept=48)])
    assert rows(tables["records"], "nbytes") == [(60,), (70,)]


def test_record_that_ends_in_a_hole_has_no_row() -> None:
    stream = tls_record(23, 1495) + tls_record(23, 20)
    tables, _ = run([Segment(stream[:1000], 0), Segment(stream[1500:], 1500)])
    assert rows(tables["records"], "nbytes") == [(20,)]
    assert rows(tables["holes"], "nbytes") == [(500,)]


@pytest.mark.parametrize(
    "head",
    [b"\x18\x03\x03\x00\x10", b"\x17\x02\x03\x00\x10", b"\x17\x03\x03\x50\x00", b"\x14\x03\x03\x00\x02"],
)
def test_implausible_headers_are_not_tls(head: bytes) -> None:
    tables, _ = run([Segment(head + b"\x00" * 16)])
    assert len(tables["records"]) == 0


record = st.builds(tls_record, st.just(23), st.integers(0, 700), st.integers(1, 4))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(record, min_size=1, max_size=8),
    st.lists(st.integers(1, 400), min_size=1, max_size=5),
    st.lists(st.integers(0, 100), max_size=5),
    st.sampled_from([None, 48]),
    st.randoms(use_true_random=False),
)
def test_any_split_gives_the_same_tables(records, sizes, cuts, kept, rng) -> None:  # type: ignore[no-untyped-def]
    segments = chop(b"".join(records), sizes, kept=kept)
    rng.shuffle(segments)
    whole, _ = run(segments)
    assert same(whole, run(segments, cuts)[0])
    assert same(whole, run(segments, range(len(segments)))[0])
