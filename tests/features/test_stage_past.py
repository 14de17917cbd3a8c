"""What is usual for a stage: its own past at equal size, and what all stages share is taken off."""

import numpy as np
import pytest

from skewscope.features import round_kernel as k
from skewscope.features.chain_kernel import SENT
from skewscope.features.rounds import Rounds
from skewscope.features.stage_past import StagePast

STAGES = 4


def excess(past, own_s, number, size=4096, matched=0):
    """Return the excess (s) of each stage in one micro-batch."""
    rows = np.zeros((STAGES, 3 + k.R_COLUMNS), dtype=np.int64)
    rows[:, 2] = np.arange(STAGES)
    rows[:, 3 + k.KEY] = SENT << 32 | number
    rows[:, 3 + k.LARGEST], rows[:, 3 + k.MATCHED] = size, matched
    found = np.full(STAGES, np.nan)
    past.excess(Rounds.of(rows), np.array(own_s), np.ones(STAGES, dtype=np.bool_), found)
    return found


@pytest.fixture
def past():
    known = StagePast()
    for n in range(20):
        excess(known, USUAL, n)
    return known


USUAL = (0.010, 0.020, 0.010, 0.005)


def test_unequal_work_is_no_excess(past):
    assert excess(past, USUAL, 20) == pytest.approx(np.zeros(STAGES))


def test_a_stage_is_compared_with_its_own_past(past):
    assert excess(past, (0.010, 0.020, 0.016, 0.005), 20) == pytest.approx([0, 0, 0.006, 0], abs=1e-9)


def test_what_all_stages_take_longer_is_nobodys(past):
    assert excess(past, tuple(1.5 * s for s in USUAL), 20, size=4096) == pytest.approx(
        np.zeros(STAGES), abs=1e-9
    )


def test_another_size_is_compared_with_the_usual_one_until_it_is_known(past):
    for n in range(5):
        excess(past, (0.030, 0.060, 0.030, 0.030), 20 + n, size=1 << 20)
    found = excess(past, (0.030, 0.060, 0.030, 0.030), 25, size=1 << 20)
    assert found == pytest.approx(np.zeros(STAGES), abs=1e-9)


def test_what_was_learned_before_a_new_match_is_not_used(past):
    assert np.isnan(excess(past, (0.030, 0.030, 0.030, 0.030), 20, matched=1)).all()
