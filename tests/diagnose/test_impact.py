"""What an incident cost, before against during."""

import numpy as np
import pytest

from skewscope.core.report import Series
from skewscope.diagnose.impact import impact
from tests.diagnose.cases import RANKS, S, network

ENGINE, OTHER = f"{RANKS[0]}:8000", "10.9.0.1:8000"
ONSET, END = 10 * S, 20 * S


def series(key, name, before, during, scope="endpoint"):
    """Return a series of 0.1 s windows over 20 s that changes at 10 s."""
    ts = [(i + 1) * S // 10 for i in range(200)]
    return Series(scope, key, name, "1", ts, [before if t <= ONSET else during for t in ts])


def cost(*given, hosts=(RANKS[1],), onset=ONSET, end=END):
    return impact(network(given), hosts, onset, end)


def test_service_before_and_during():
    got = cost(
        series(ENGINE, "ttft_s", 0.2, 0.6),
        series(ENGINE, "chunk_gap_s", 0.04, 0.1),
        series(ENGINE, "chunks", 8.0, 3.0),
        series(ENGINE, "active_streams", 4.0, 5.0),
        series(ENGINE, "arrivals", 1.0, 0.5),
        series(RANKS[0], "interval_s", 0.04, 0.1, scope="group"),
    )
    assert got.ttft_s == (0.2, 0.6)
    assert got.chunk_gap_s == pytest.approx((0.04, 0.1))
    assert got.step_s == pytest.approx((0.04, 0.1))
    assert got.tokens_per_s_lost == pytest.approx(50.0)
    assert (got.streams, got.requests) == (5, 50)


def test_more_than_before_is_no_loss():
    assert cost(series(ENGINE, "chunks", 3.0, 8.0)).tokens_per_s_lost == 0.0


def test_nothing_before_is_unknown_and_not_zero():
    """A fault that is there from the first packet: no comparison in time is made."""
    got = cost(series(ENGINE, "ttft_s", 0.2, 0.6), series(ENGINE, "chunks", 8.0, 3.0), onset=0)
    assert got.ttft_s[0] is None
    assert got.ttft_s[1] is not None
    assert got.tokens_per_s_lost is None


def test_without_endpoints_nothing_is_claimed():
    got = cost()
    assert (got.tokens_per_s_lost, got.ttft_s, got.streams) == (None, (None, None), 0)


def test_windows_next_to_the_onset_are_left_out():
    """The onset is known to about a window: the fault may have begun in the one before it."""
    got = cost(series(ENGINE, "ttft_s", 0.2, 0.6), onset=ONSET + S // 5)
    assert got.ttft_s == (0.2, 0.6)


def test_an_incident_that_goes_on_lasts_to_the_end():
    assert cost(series(ENGINE, "ttft_s", 0.2, 0.6), end=None).ttft_s == (0.2, 0.6)


def test_endpoints_of_others_do_not_count():
    mine, others = series(ENGINE, "chunks", 8.0, 3.0), series(OTHER, "chunks", 8.0, 1.0)
    assert cost(mine, others).tokens_per_s_lost == pytest.approx(50.0)


def test_who_serves_nothing_is_measured_by_all_engines():
    got = cost(series(ENGINE, "chunks", 8.0, 3.0), hosts=("10.0.0.3",))
    assert got.tokens_per_s_lost == pytest.approx(50.0)


def test_unknown_values_are_left_out():
    given = series(ENGINE, "ttft_s", 0.2, 0.6)
    given.values[:50] = [None] * 50
    assert cost(given).ttft_s == (0.2, 0.6)


def test_a_thinned_series_gives_the_same_rate():
    """After thinning a point carries the sum of several windows, and points are further apart."""
    whole = series(ENGINE, "chunks", 8.0, 3.0)
    values = np.array(whole.values).reshape(-1, 2).sum(axis=1)
    thin = Series("endpoint", ENGINE, "chunks", "1", whole.ts_ns[1::2], values.tolist())
    assert cost(thin).tokens_per_s_lost == pytest.approx(cost(whole).tokens_per_s_lost, rel=0.05)
