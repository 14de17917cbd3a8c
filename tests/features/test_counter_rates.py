"""Each trap of reading counters, and any cut into slices gives the same rises."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.core.schemas import COUNTERS, METRICS, Kind
from skewscope.core.tables import Table
from skewscope.features import counter_rates
from skewscope.features.counter_rates import CounterRates, Said, codes, per_second

MS = 1_000_000
S = 1_000_000_000


def readings(values, kind=Kind.COUNTER64, step_ns=S, ceiling=0.0, times=None, **columns):
    n = len(values)
    ts = np.array(times if times is not None else [(i + 1) * step_ns for i in range(n)], np.int64)
    made = {"ts_ns": ts, "value": np.array(values, float), "kind": np.full(n, kind)}
    made["ceiling"] = np.full(n, ceiling)
    made.update({k: np.full(n, v) if np.isscalar(v) else np.array(v) for k, v in columns.items()})
    return Table(COUNTERS, made)


def said(values, **more):
    """Return (what, rise) of each reading of one series."""
    table = readings(values, **more)
    rises = CounterRates().update(table)
    return [
        (Said(int(w)).name, None if math.isnan(r) else float(r))
        for w, r in zip(rises.said, rises.rise, strict=True)
    ]


def test_a_counter_rises():
    assert said([5, 5, 12]) == [("FIRST", None), ("ROSE", 0.0), ("ROSE", 7.0)]


def test_a_counter_of_32_bits_wraps():
    top = 2**32
    assert said([top - 10, 20], kind=Kind.COUNTER32) == [("FIRST", None), ("ROSE", 30.0)]


def test_a_counter_of_64_bits_does_not_wrap_there():
    assert said([2**32 - 10, 20])[1] == ("RESET", None)


@pytest.mark.parametrize("kind", [Kind.COUNTER32, Kind.COUNTER64])
def test_a_reset_is_neither_a_fall_nor_a_wrap(kind):
    assert said([1000, 3, 8], kind=kind) == [("FIRST", None), ("RESET", None), ("ROSE", 5.0)]


def test_a_counter_at_its_ceiling_is_not_known_to_be_still():
    """link_downed = 255 on the H100 host of the samples: its rate would be 0 for ever."""
    got = said([254, 255, 255], kind=Kind.COUNTER32, ceiling=255)
    assert got == [("FIRST", None), ("FULL", None), ("FULL", None)]
    assert said([255, 3], kind=Kind.COUNTER32, ceiling=255)[1] == ("RESET", None)


def test_an_extended_counter_passes_the_ceiling_of_the_narrow_one():
    got = said([65_000, 65_536, 65_540, 65_535], kind=Kind.COUNTER32, ceiling=65_535)
    assert got == [("FIRST", None), ("ROSE", 536.0), ("ROSE", 4.0), ("RESET", None)]


def test_a_share_of_the_last_second_has_no_rate():
    assert said([0.1, 0.9, 0.2], kind=Kind.PERCENT) == [("VALUE", None)] * 3
    assert said([3.0, 1.0], kind=Kind.GAUGE) == [("VALUE", None)] * 2


def test_a_last_code_tells_a_change_and_never_that_nothing_came():
    table = readings([0, 79, 79, 31], kind=Kind.LAST_CODE)
    rises = CounterRates().update(table)
    assert [Said(int(w)).name for w in rises.said] == ["FIRST", "CHANGED", "SAME", "CHANGED"]
    assert table["value"][codes(table, rises)].tolist() == [79.0, 31.0]


def test_sticky_status_bits_are_no_event():
    """All eight GPUs of a healthy host have RxErr, BadTLP, BadDLLP and Timeout set (lspci sample)."""
    table = readings([0b1111, 0b1111, 0b1111], kind=Kind.LAST_CODE)
    assert len(codes(table, CounterRates().update(table))) == 0


def test_a_sentinel_is_no_reading():
    assert said([5, math.nan, 9]) == [("FIRST", None), ("UNKNOWN", None), ("ROSE", 4.0)]


def test_a_cached_answer_is_no_reading():
    """Polled each 5 ms, while the driver reads its counters each 12 ms."""
    table = readings([7, 7, 7, 9, 9, 9, 9], kind=Kind.COUNTER32, step_ns=5 * MS)
    rises = CounterRates().update(table)
    assert rises.row.tolist() == [0, 3, 6]
    assert (table["ts_ns"][rises.row[1:]] - rises.since_ns[1:]).tolist() == [15 * MS, 15 * MS]
    assert rises.rise[1:].tolist() == [2.0, 0.0]


def test_readings_twice_and_out_of_order_are_left_out():
    table = readings([5, 5, 9], times=[S, S, 2 * S])
    follow = CounterRates()
    assert len(follow.update(table)) == 2
    assert len(follow.update(readings([7], times=[S + 1]))) == 0
    assert follow.update(readings([10], times=[3 * S])).rise.tolist() == [1.0]


def test_series_differ_by_source_entity_name_and_kind():
    table = readings([1, 2, 3, 4], source=[0, 1, 0, 0], entity=[1, 1, 2, 1], name=[1, 1, 1, 2])
    rises = CounterRates().update(table)
    assert len(set(rises.series.tolist())) == 4
    assert set(rises.said.tolist()) == {Said.FIRST}


def test_buckets_of_a_histogram_are_series_of_their_own():
    def table(values, at):
        n = len(values)
        return Table(
            METRICS,
            {
                "ts_ns": np.full(n, at),
                "bound": np.array([0.1, np.inf, np.nan]),
                "kind": np.array([Kind.BUCKET, Kind.BUCKET, Kind.COUNT]),
                "value": np.array(values, float),
            },
        )

    follow = CounterRates()
    follow.update(table([1, 2, 2], S))
    assert follow.update(table([4, 7, 7], 2 * S)).rise.tolist() == [3.0, 5.0, 5.0]
    assert len(follow) == 3


def test_the_rate_is_over_the_time_in_which_it_was_counted():
    table = readings([10, 30, 2, 6], times=[S, 3 * S, 4 * S, 5 * S])
    follow = CounterRates()
    rate, covered = per_second(follow.update(table), table, len(follow))
    assert covered.tolist() == [3.0]
    assert rate.tolist() == [8.0]  # (20 + 4) in 2 + 1 s; what the reset swallowed is not known
    full = readings([255, 255], kind=Kind.COUNTER32, ceiling=255)
    follow = CounterRates()
    assert math.isnan(per_second(follow.update(full), full, 1)[0][0])


def test_series_are_bounded(monkeypatch):
    monkeypatch.setattr(counter_rates, "MAX_SERIES", 3)
    follow = CounterRates()
    rises = follow.update(readings([1] * 9, entity=list(range(9))))
    assert len(follow) == 3
    assert len(rises) == 3
    assert len(follow.update(COUNTERS.empty())) == 0


@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 5, 2**32 - 2, math.nan])), max_size=30),
    st.lists(st.integers(0, 30), max_size=4),
)
@settings(deadline=None)
def test_any_cut_into_slices_gives_the_same(steps, cuts):
    n = len(steps)
    table = readings(
        [v for _, v in steps],
        kind=Kind.COUNTER32,
        times=[(i // 3 + 1) * 5 * MS for i in range(n)],
        entity=[e for e, _ in steps],
    )
    whole = CounterRates().update(table)
    follow, got = CounterRates(), []
    edges = sorted({0, n, *(3 * c for c in cuts if 3 * c < n)})
    for lo, hi in pairwise(edges):
        got += rows(follow.update(table.take(slice(lo, hi))), lo)
    assert sorted(got) == sorted(rows(whole, 0))
    assert (np.nan_to_num(whole.rise) >= 0).all()


def rows(rises, first):
    rise = np.nan_to_num(rises.rise, nan=-1).tolist()
    return list(zip((rises.row + first).tolist(), rises.said.tolist(), rise, strict=True))
