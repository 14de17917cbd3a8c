"""Rings, usual values, grouped quantiles."""

from __future__ import annotations

import numpy as np
import pytest

from skewscope.features.rolling import LEARN, RING, Ring, Usual, grouped_quantile


@pytest.mark.parametrize("q", [0.0, 0.25, 0.5, 0.95, 1.0])
def test_grouped_quantile_equals_one_group_at_a_time(q):
    rng = np.random.default_rng(3)
    rows, values = rng.integers(0, 7, 200), rng.normal(size=200)
    found = grouped_quantile(rows, values, q, 9)
    for row in range(7):
        mine = np.sort(values[rows == row])
        assert found[row] == mine[int(q * (len(mine) - 1) + 0.5)]
    assert np.isnan(found[7:]).all()


def test_a_ring_keeps_the_latest_values():
    ring = Ring()
    ring.reserve(2)
    for start in range(0, 3 * RING, 8):
        ring.push(np.ones(8, dtype=np.int64), np.arange(start, start + 8, dtype=np.float64))
    every = np.array([0, 1])
    assert np.isnan(ring.quantile(every, 0.5)[0])
    assert ring.quantile(every, 0.0)[1] == 2 * RING
    assert ring.quantile(every, 0.0, 4)[1] == 3 * RING - 4
    assert ring.mode(0) == (pytest.approx(np.nan, nan_ok=True), 0)


def test_a_busy_window_is_thinned_evenly():
    ring = Ring()
    ring.reserve(1)
    ring.push(np.zeros(160, dtype=np.int64), np.arange(160.0))
    assert ring.count(np.array([0]))[0] == 16
    assert ring.quantile(np.array([0]), 0.5)[0] == 80


def learned(values):
    usual = Usual()
    usual.reserve(1)
    for value in values:
        usual.learn(np.zeros(4, dtype=np.int64), np.full(4, value), 0.1)
    return usual


def test_a_fault_hardly_teaches_the_usual_value():
    usual = learned([1.0] * 10 + [3.0] * 50)  # five seconds at three times the usual
    assert usual.known(np.array([0]))[0]
    assert usual.value[0] < 1.06


def test_a_busy_beginning_is_forgotten_within_seconds():
    usual = learned([2.0] * (LEARN // 4 + 1) + [1.0] * 200)
    assert usual.value[0] < 1.1
