"""A member against the others of its round: the median of the known ones, and who has none."""

import numpy as np
import pytest

from skewscope.features import round_kernel as k
from skewscope.features.peers import beyond_peers, taken_shares
from skewscope.features.rounds import Rounds

NAN = float("nan")


def compare(own, busy, start=(0,)):
    n = len(own)
    excess, peers_own, wait = (np.full(n, NAN) for _ in range(3))
    alone = np.zeros(n, dtype=np.bool_)
    entry = np.arange(n, dtype=np.int64) * 1_000_000
    first = np.array(start, dtype=np.int64)
    beyond_peers(first, entry, np.array(own), np.array(busy), excess, peers_own, wait, alone)
    return excess, peers_own, wait, alone


def test_each_is_compared_with_the_median_of_the_others():
    excess, peers_own, wait, alone = compare((1.0, 2.0, 9.0), (1.5, 2.5, 9.5))
    assert excess == pytest.approx([1.5 - 6.0, 2.5 - 5.5, 9.5 - 2.0])
    assert peers_own == pytest.approx([5.5, 5.0, 1.5])
    assert wait == pytest.approx([2e-3, 1e-3, 0.0])
    assert not alone.any()


def test_rounds_are_apart_and_unknown_times_count_for_nobody():
    excess, peers_own, _, alone = compare((1.0, NAN, 4.0, 6.0), (1.0, NAN, 4.0, 6.0), start=(0, 2))
    assert np.isnan(excess[:2]).all()
    assert excess[2:] == pytest.approx([-2.0, 2.0])
    assert peers_own[1:] == pytest.approx([1.0, 6.0, 4.0])
    assert alone.tolist() == [True, False, False, False]


def test_shares_of_what_a_round_took():
    rows = np.zeros((5, 3 + k.R_COLUMNS), dtype=np.int64)
    rows[:, 3 + k.KEY] = [1, 1, 1, 2, 2]
    rows[:, 3 + k.DATA_IN] = [100, 300, 200, 0, 50]
    assert taken_shares(Rounds.of(rows)) == pytest.approx([0.5, 1.5, 1.0, 1.0, 1.0])
