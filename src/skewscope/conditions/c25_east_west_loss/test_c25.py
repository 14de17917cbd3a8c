"""Which losses accuse a link."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Verdicts, Window

CONDITION = load_all()["c25"]
LIMIT = CONDITION.entry.params
TENTH_NS = 100_000_000
USUAL = {
    "lost": 8.0,
    "lost_share": 0.02,
    "lost_fit": 0.95,
    "lost_pair_share": 1.0,
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
        onset = {"lost": np.array([start + 1000 - 1000 * i])}
        found.append(detector.step(Window(start, start + TENTH_NS, ["x"], columns, slot, state, onset)))
    return found


def state_of(**changed: float) -> int:
    """Return the state of a single window."""
    return int(judge(changed)[0].state[0])


def test_it_fires_at_the_thresholds():
    assert state_of(lost=LIMIT.min_lost, lost_share=LIMIT.min_share, lost_fit=LIMIT.min_fit) == FINDING
    assert state_of(lost=LIMIT.min_lost - 1) == CLEAR
    assert state_of(lost_share=0.9 * LIMIT.min_share) == CLEAR


def test_losses_that_another_link_explains_are_not_its_own():
    assert state_of(lost_fit=0.5) == CLEAR


def test_the_onset_stays_the_first_loss_until_losses_end():
    assert judge({"lost": 1.0}, {}, {})[-1].onset_ns[0] == 10 * TENTH_NS + 1000
    assert judge({}, {"lost": 0.0}, {})[-1].onset_ns[0] == 12 * TENTH_NS - 1000


def test_the_end_whose_pairs_are_all_hit_scores_higher():
    one, all_ = judge({"lost_pair_share": 0.33}, {})
    assert one.score[0] < all_.score[0]


def test_more_losses_score_higher():
    few, many = judge({"lost": 3.0}, {"lost": 30.0})
    assert few.score[0] < many.score[0]
