"""Slices of event time: any grouping of the input, taps of any length, gaps, and clocks that go astray."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.core.directory import Directory
from skewscope.core.schemas import COUNTERS, HTTP, PACKETS
from skewscope.core.tables import Heard, Table
from skewscope.engine.slices import LOOK_BACK_NS, MAX_IDLE_SLICES, TICK_NS, slices
from tests.engine.tables import MS, http, packets

HOUR_MS = 3_600_000


def cut(*taps, schemas=(PACKETS, HTTP)):
    """Slice taps, each a list of batches; a hard limit on the count keeps a failure short."""
    made = slices([iter(t) for t in taps], Directory(), schemas=schemas)
    found = list(itertools.islice(made, 5_000))
    assert len(found) < 5_000
    return found


def batches(times, tap=0, sizes=(1_000,)):
    """Cut times (ms) into batches of the given sizes, repeated."""
    out, at = [], 0
    for size in itertools.cycle(sizes):
        if at >= len(times):
            return out
        part = times[at : at + size]
        out.append({"packets": packets(part, tap, at + 1)})
        at += size
    return out


def shape(found):
    """Return what slices hold: start, and (tap, frame) of each row."""
    return [
        (
            s.start_ns,
            list(
                zip(s.tables["packets"]["tap"].tolist(), s.tables["packets"]["frame"].tolist(), strict=True)
            ),
        )
        for s in found
    ]


def frames(found):
    return sorted(pair for _, pairs in shape(found) for pair in pairs)


def test_a_slice_is_one_tick_wide_and_starts_with_the_first_row():
    found = cut(batches([50, 60, 149, 150, 349]))
    assert [(s.start_ns, s.end_ns) for s in found] == [
        (50 * MS + i * TICK_NS, 50 * MS + (i + 1) * TICK_NS) for i in range(3)
    ]
    assert [len(s.tables["packets"]) for s in found] == [3, 1, 1]
    assert [s.last for s in found] == [False, False, True]


def test_nothing_makes_no_slice():
    assert cut() == []
    assert cut([], batches([])) == []
    assert cut([{"packets": packets([])}]) == []


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 1_200), min_size=1, max_size=30),
    st.lists(st.integers(0, 1_200), max_size=30),
    st.lists(st.integers(1, 7), min_size=1, max_size=4),
    st.booleans(),
)
def test_any_grouping_gives_the_same_slices(one, two, sizes, in_order):
    """Rows in order or not: what a slice holds does not depend on the batches in which they came."""
    if in_order:
        one, two = sorted(one), sorted(two)
    whole = cut(batches(one), batches(two, 1))
    parts = cut(batches(one, 0, sizes), batches(two, 1, sizes[::-1]))
    assert shape(whole) == shape(parts)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 40_000_000), max_size=20), max_size=3),
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
)
def test_no_row_is_lost_or_doubled(taps, sizes):
    """Not even rows hours apart or far back in time."""
    found = cut(*(batches(times, tap, sizes) for tap, times in enumerate(taps)))
    expected = [(tap, i + 1) for tap, times in enumerate(taps) for i in range(len(times))]
    assert frames(found) == expected
    assert all(a.end_ns <= b.start_ns for a, b in itertools.pairwise(found))


def test_rows_of_a_slice_are_sorted_over_the_taps():
    (first,) = cut(batches([0, 20, 40]), batches([10, 30], 1))
    assert first.tables["packets"]["ts_ns"].tolist() == [n * 10 * MS for n in range(5)]


def test_rows_of_one_time_keep_the_order_of_taps():
    (first,) = cut(batches([5, 5]), batches([5], 1))
    assert shape([first])[0][1] == [(0, 1), (0, 2), (1, 1)]


def test_taps_that_start_and_end_apart():
    found = cut(batches([500, 600]), batches([0, 100, 200], 1), batches([350], 2))
    assert [s.start_ns // MS for s in found] == [0, 100, 200, 300, 400, 500, 600]
    assert frames(found) == [(0, 1), (0, 2), (1, 1), (1, 2), (1, 3), (2, 1)]
    assert [s.last for s in found] == [False] * 6 + [True]


def test_a_slice_waits_for_the_slowest_tap():
    """The watermark: a tap that has not shown how far its time is holds the slice back."""
    pulled = []

    def slow():
        for batch in batches([0, 50, 120, 250], 1, (1,)):
            pulled.append(1)
            yield batch

    made = slices([iter(batches([0, 400])), slow()], Directory(), schemas=(PACKETS,))
    next(made)
    assert len(pulled) == 3


def test_a_gap_of_hours_is_passed_over():
    found = cut(batches([0, 10, 5 * HOUR_MS, 5 * HOUR_MS + 10]))
    assert len(found) <= MAX_IDLE_SLICES + 3
    assert len(found[-1].tables["packets"]) == 2
    assert (found[-1].start_ns - found[0].start_ns) % TICK_NS == 0


def test_a_silence_of_seconds_is_seen_to_pass():
    found = cut(batches([0, 3_000]))
    assert len(found) == 31
    assert all(b.start_ns == a.end_ns for a, b in itertools.pairwise(found))


def test_every_gap_is_passed_over_anew():
    found = cut(batches([0, HOUR_MS, 2 * HOUR_MS]))
    assert len(found) <= 2 * MAX_IDLE_SLICES + 5
    assert frames(found) == [(0, 1), (0, 2), (0, 3)]


def test_time_that_steps_back_within_a_tap():
    """The row stays in the slice in which it arrived, and that slice is sorted."""
    found = cut(batches([0, 250, 130, 260]))
    assert [s.tables["packets"]["frame"].tolist() for s in found] == [[1], [], [3, 2, 4]]


def test_a_clock_that_is_set_back_keeps_everything():
    found = cut(batches([HOUR_MS, HOUR_MS + 10, 0, 10, 20]))
    assert frames(found) == [(0, n) for n in range(1, 6)]


def test_other_tables_are_cut_alike():
    source = [{"packets": packets([0, 50, 250]), "http": http([40, 240])}]
    found = cut(source)
    assert [len(s.tables["http"]) for s in found] == [1, 0, 1]


def test_rows_that_come_with_the_end_of_a_tap_are_kept():
    """A framer may hold rows back until the file has ended."""
    source = [{"packets": packets([0, 250])}, {"http": http([120]), "packets": packets([])}]
    found = cut(source)
    assert sum(len(s.tables["http"]) for s in found) == 1


def test_tables_that_nobody_asked_for_are_dropped():
    """They must not hold the slices open for ever."""
    found = cut([{"packets": packets([0]), "http": http([900])}], schemas=(PACKETS,))
    assert [set(s.tables) for s in found] == [{"packets"}]


@pytest.mark.parametrize("tick_ms", [1, 100, 1_000])
def test_the_tick_is_a_choice(tick_ms):
    made = list(slices([iter(batches([0, 999]))], Directory(), schemas=(PACKETS,), tick_ns=tick_ms * MS))
    assert all(s.end_ns - s.start_ns == tick_ms * MS for s in made)
    assert sum(len(s.tables["packets"]) for s in made) == 2
    assert np.all(np.diff([s.start_ns for s in made]) > 0)


def beside(times):
    """Readings at times (ms), one batch each, as a document yields them."""
    for ms in times:
        ts = np.array([ms * MS])
        yield Heard({"counters": Table(COUNTERS, {"ts_ns": ts, "value": np.array([float(ms)])})}, int(ts[0]))


@given(st.lists(st.integers(-700_000, 700_000), max_size=12).map(sorted))
@settings(deadline=None)
def test_readings_join_the_slices_that_packets_make(times):
    base = 1_000_000
    taps = batches([base, base + 120, base + 470])
    alone = shape(cut(taps))
    given_ms = [base + t for t in times]
    made = list(
        slices(
            [iter(taps)],
            Directory(),
            beside=[beside(given_ms)],
            schemas=(PACKETS, HTTP, COUNTERS),
        )
    )
    assert shape(made) == alone
    got = [v for s in made for v in s.tables["counters"]["value"].tolist()]
    low, high = made[0].start_ns - LOOK_BACK_NS, made[-1].end_ns
    assert got == [float(ms) for ms in given_ms if low <= ms * MS < high]
    for s in made[1:]:
        ts = s.tables["counters"]["ts_ns"]
        assert ((ts >= s.start_ns) & (ts < s.end_ns)).all()


def test_without_packets_readings_make_the_slices():
    made = list(
        slices(
            [],
            Directory(),
            beside=[beside([0, 900_000])],
            schemas=(COUNTERS,),
            tick_ns=1000 * MS,
            max_idle=1,
        )
    )
    assert [len(s.tables["counters"]) for s in made] == [1, 0, 1]
    assert made[-1].start_ns == 900_000 * MS
