import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewscope.features.histograms import bucket_quantile

EDGES = np.array([0.1, 0.5, 1.0, 5.0, np.inf])


def quantile(rises, q, bounds=EDGES):
    n = len(bounds)
    return float(bucket_quantile(np.zeros(n, np.int64), bounds, np.array(rises, float), q, 1)[0])


def test_by_hand():
    assert quantile([0, 10, 10, 10, 10], 0.5) == pytest.approx(0.3)  # half way from 0.1 to 0.5
    assert quantile([4, 4, 4, 4, 4], 0.5) == pytest.approx(0.05)
    assert quantile([0, 0, 0, 0, 3], 0.5) == 5.0  # at least
    assert np.isnan(quantile([0, 0, 0, 0, 0], 0.5))
    assert np.isnan(quantile([0, np.nan, 2, 2, 2], 0.5))
    assert np.isnan(quantile([1, 2], 0.5, np.array([0.1, 0.5])))


def test_rows_are_apart_and_may_come_in_any_order():
    rows = np.array([2, 0, 2, 0])
    bounds = np.array([np.inf, np.inf, 1.0, 1.0])
    got = bucket_quantile(rows, bounds, np.array([8.0, 2.0, 8.0, 0.0]), 0.5, 4)
    assert got[[0, 2]].tolist() == [1.0, 0.5]
    assert np.isnan(got[[1, 3]]).all()
    assert len(bucket_quantile(rows[:0], bounds[:0], bounds[:0], 0.5, 0)) == 0


@given(st.lists(st.floats(0.001, 4.9), min_size=1, max_size=60), st.sampled_from([0.1, 0.5, 0.9, 0.99]))
def test_the_answer_is_in_the_bucket_of_the_true_quantile(values, q):
    seen = np.array(values)
    rises = [int((seen <= edge).sum()) for edge in EDGES]
    true = np.sort(seen)[max(0, int(np.ceil(q * len(seen) - 1e-9)) - 1)]
    at = int(np.searchsorted(EDGES, true))
    low = EDGES[at - 1] if at else 0.0
    assert low <= quantile(rises, q) <= EDGES[at]
