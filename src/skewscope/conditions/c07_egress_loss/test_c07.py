"""How many losses count."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Verdicts, Window

CONDITION = load_all()["c07"]
LIMIT = CONDITION.entry.params
TENTH_NS = 100_000_000
USUAL = {
    "lost_down": 6.0,
    "lost_down_share": 0.05,
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
        onset = {"lost_down": np.array([start + 1000 - 1000 * i])}
        found.append(detector.step(Window(start, start + TENTH_NS, ["x"], columns, slot, state, onset)))
    return found


def state_of(**changed: float) -> int:
    """Return the state of a single window."""
    return int(judge(changed)[0].state[0])


def test_it_fires_at_the_threshold_of_count_and_share():
    assert state_of(lost_down=LIMIT.min_lost, lost_down_share=LIMIT.min_share) == FINDING
    assert state_of(lost_down=LIMIT.min_lost - 1) == CLEAR
    assert state_of(lost_down_share=0.9 * LIMIT.min_share) == CLEAR


def test_the_onset_is_the_first_lost_copy():
    assert judge({})[0].onset_ns[0] == 10 * TENTH_NS + 1000


def test_more_losses_score_higher():
    few, many = judge({"lost_down": LIMIT.min_lost}, {"lost_down": 30.0})
    assert few.score[0] < many.score[0]
    assert judge({"lost_down": 0.0})[0].score[0] == 0.0
