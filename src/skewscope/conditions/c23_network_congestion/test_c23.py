"""Which growth of delay is a link of its own."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Verdicts, Window

CONDITION = load_all()["c23"]
LIMIT = CONDITION.entry.params
TENTH_NS = 100_000_000
USUAL = {
    "slow_fit": 0.9,
    "delay_ratio": 0.1,
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
        onset = {"delay_s": np.array([start + 1000 - 1000 * i])}
        found.append(detector.step(Window(start, start + TENTH_NS, ["x"], columns, slot, state, onset)))
    return found


def state_of(**changed: float) -> int:
    """Return the state of a single window."""
    return int(judge(changed)[0].state[0])


def test_it_fires_at_the_thresholds():
    assert state_of(slow_fit=LIMIT.min_fit, delay_ratio=LIMIT.min_delay_ratio) == FINDING
    assert state_of(slow_fit=0.9 * LIMIT.min_fit) == CLEAR
    assert state_of(delay_ratio=0.9 * LIMIT.min_delay_ratio) == CLEAR


def test_the_onset_stays_that_of_the_first_hit():
    assert judge({}, {}, {})[-1].onset_ns[0] == 10 * TENTH_NS + 1000


def test_a_doubtful_window_keeps_the_onset_and_a_clear_one_forgets_it():
    doubt, clear = {"slow_fit": 0.75 * LIMIT.min_fit}, {"slow_fit": 0.0}
    assert judge({}, doubt, {})[-1].onset_ns[0] == 10 * TENTH_NS + 1000
    assert judge({}, clear, {})[-1].onset_ns[0] == 12 * TENTH_NS - 1000


def test_a_better_fit_and_more_delay_score_higher():
    vague, clear, long = judge({"slow_fit": 0.7}, {}, {"delay_ratio": 1.0})
    assert vague.score[0] < clear.score[0] <= long.score[0]
