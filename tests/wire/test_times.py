"""Impossible times: mended, counted, and the same whatever the split."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.wire.times import LEAP_NS, LEAPS, MENDED, WITNESSES, mend, new_clock, take_erf

NOW = 1_700_000_000_000_000_000
STEADY = [NOW + i * 1000 for i in range(60)]


def mended(times, sizes=(10**6,)):
    """Return (times after mending, mended, leaps), the times given in pieces as a reader does."""
    clock, pending, out = new_clock(), [], []
    rest, k = list(times), 0
    while True:
        size = sizes[k % len(sizes)]
        k += 1
        pending, rest = pending + rest[:size], rest[size:]
        ts = np.array(pending, dtype=np.int64)
        n = mend(ts, clock, not rest)
        out += ts[:n].tolist()
        pending = pending[n:]
        if not rest:
            assert not pending
            return out, int(clock[MENDED]), int(clock[LEAPS])


@pytest.mark.parametrize("wild", [0, 2**62, NOW - LEAP_NS - 10**6, NOW + LEAP_NS + 10**6])
@pytest.mark.parametrize("at", [1, 30, 58, 59])
def test_one_wild_time_becomes_the_one_before(wild, at):
    times = STEADY.copy()
    times[at] = wild
    expected = STEADY.copy()
    expected[at] = STEADY[at - 1]
    assert mended(times) == (expected, 1, 0)


@pytest.mark.parametrize("wild", [0, 2**62])
def test_the_first_time_may_be_the_wild_one(wild):
    assert mended([wild, *STEADY[1:]]) == ([STEADY[1], *STEADY[1:]], 1, 0)


def test_several_in_a_row():
    times = STEADY.copy()
    times[20:26] = [0] * 6
    found, count, leaps = mended(times)
    assert found[20:26] == [STEADY[19]] * 6
    assert (count, leaps) == (6, 0)


@pytest.mark.parametrize("pause", [3 * LEAP_NS, -3 * LEAP_NS])
def test_a_leap_that_all_later_packets_confirm_is_believed(pause):
    times = STEADY[:30] + [t + pause for t in STEADY[30:]]
    assert mended(times) == (times, 0, 1)


def test_pauses_below_a_day_are_left_alone():
    times = [NOW, NOW + LEAP_NS, NOW, NOW + LEAP_NS - 1]
    assert mended(times) == (times, 0, 0)


def test_rows_wait_for_their_witnesses():
    clock = new_clock()
    assert mend(np.array(STEADY[: WITNESSES - 1]), clock, False) == 0
    assert mend(np.array(STEADY[:20]), clock, False) == 20
    assert mend(np.array([STEADY[20], 0, *STEADY[21:30]]), clock, False) == 1


def test_nothing_at_all():
    assert mended([]) == ([], 0, 0)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([0, 5, NOW, NOW + 1, NOW + 2 * LEAP_NS, 2**62]), max_size=60),
    st.lists(st.integers(1, 25), min_size=1, max_size=5),
)
def test_any_split_mends_the_same(times, sizes):
    assert mended(times, sizes) == mended(times)


def test_erf_times_are_finer_than_the_file_s():
    record = (0x12345678_80000000).to_bytes(8, "little") + bytes(8)
    buf = np.frombuffer(record * 3, np.uint8)
    ts = np.full(3, 7, dtype=np.int64)
    at, kept = np.array([0, 16, 32]), np.array([16, 15, 16])
    take_erf(buf, at, kept, np.array([0, 0, -1]), np.array([True]), ts)
    assert ts.tolist() == [0x12345678 * 10**9 + 500_000_000, 7, 7]
