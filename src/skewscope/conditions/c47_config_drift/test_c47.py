"""Which losses speak of a size limit."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Verdicts, Window

CONDITION = load_all()["c47"]
LIMIT = CONDITION.entry.params
TENTH_NS = 100_000_000
USUAL = {
    "lost_smallest_bytes": 1448.0,
    "passed_largest_bytes": 1000.0,
    "episode_lost": 4.0,
    "episode_fit": 1.0,
}


def judge(*changes: dict[str, float]) -> list[Verdicts]:
    """Return the verdicts on consecutive windows of one scope: the usual one but for the changes."""
    detector = CONDITION.fresh()
    state = {n: np.array([v]) for n, v in detector.STATE.items()}
    slot = np.zeros(1, dtype=np.int64)
    found = []
    for i, changed in enumerate(changes):
        columns = defaultdict(lambda: np.full(1, np.nan))
        columns.update({n: np.array([v]) for n, v in (USUAL | changed).items()})
        start = (10 + i) * TENTH_NS
        onset = {"episode_lost": np.array([start + 1000 - 1000 * i])}
        found.append(detector.step(Window(start, start + TENTH_NS, ["x"], columns, slot, state, onset)))
    return found


def state_of(**changed: float) -> int:
    """Return the state of a single window."""
    return int(judge(changed)[0].state[0])


def test_it_fires_at_the_thresholds():
    least = {"episode_lost": LIMIT.min_lost, "episode_fit": LIMIT.min_fit}
    assert state_of(**least, lost_smallest_bytes=LIMIT.min_bytes, passed_largest_bytes=100.0) == FINDING
    assert state_of(episode_lost=LIMIT.min_lost - 1) == CLEAR
    assert state_of(episode_fit=0.9 * LIMIT.min_fit) == CLEAR


def test_a_large_copy_that_passed_clears_the_port():
    assert state_of(passed_largest_bytes=1448.0) == CLEAR


def test_a_small_copy_that_was_lost_is_random_loss():
    assert state_of(lost_smallest_bytes=66.0, passed_largest_bytes=52.0) == CLEAR


def test_where_nothing_passed_nothing_is_said_of_sizes():
    assert state_of(passed_largest_bytes=0.0) == CLEAR


def test_the_onset_is_the_first_lost_copy():
    assert judge({})[0].onset_ns[0] == 10 * TENTH_NS + 1000


def test_more_losses_score_higher():
    few, many = judge({"episode_lost": 2.0}, {"episode_lost": 8.0})
    assert few.score[0] < many.score[0]
