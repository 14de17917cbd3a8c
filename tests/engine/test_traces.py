"""Series that lose resolution when they are full: their span, their sums, and who is let in."""

import numpy as np
import pytest

from skewscope.engine.traces import Traces

LIMIT = 64


def traced(counts, count, value):
    traces = Traces(counts)
    for i in range(count):
        traces.add(i, ["a"], np.array([float(value(i))]), 9, LIMIT)
    ((_, ts, values),) = traces.series()
    return ts, values


@pytest.mark.parametrize("counts", [False, True])
def test_a_series_is_bounded_and_keeps_its_span(counts):
    ts, _ = traced(counts, 10_000, lambda i: 1)
    assert 32 <= len(ts) <= 64
    assert ts[0] < 400
    assert ts[-1] > 9_500
    assert len(set(np.diff(ts).tolist())) == 1


def test_a_thinned_count_still_adds_up():
    """Rates are computed from counts and the distance of points: both must grow alike."""
    ts, values = traced(True, 1_000, lambda i: i % 7)
    pending = range(ts[-1] + 1, 1_000)
    assert sum(values) == sum(i % 7 for i in range(1_000)) - sum(i % 7 for i in pending)


def test_a_thinned_state_is_the_latest_one():
    ts, values = traced(False, 1_000, lambda i: i)
    assert values == [float(t) for t in ts]


def test_scopes_come_go_and_thin_out_apart():
    traces = Traces(True)
    for i in range(200):
        keys = ["b", "a"] if i % 50 == 0 else ["a"]
        traces.add(i, keys, np.ones(len(keys)), 9, LIMIT)
    found = {key: (ts, values) for key, ts, values in traces.series()}
    assert found["b"] == ([0, 50, 100, 150], [1.0] * 4)
    assert len(found["a"][0]) < LIMIT
    assert sum(found["a"][1]) == 200


def test_values_that_are_not_known_are_passed_over():
    traces = Traces(False)
    traces.add(1, ["a", "b"], np.array([np.nan, 2.0]), 9, LIMIT)
    traces.add(2, ["a", "b"], np.array([1.0, np.inf]), 9, LIMIT)
    assert list(traces.series()) == [("b", [1], [2.0]), ("a", [2], [1.0])]


def test_no_more_series_than_allowed():
    traces = Traces(False)
    for ts in range(3):
        traces.add(ts, list("abc"), np.ones(3), 2, LIMIT)
    assert [(key, len(when)) for key, when, _ in traces.series()] == [("a", 3), ("b", 3)]
    assert len(traces) == 2
