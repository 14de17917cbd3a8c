"""When a port is full."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Verdicts, Window

CONDITION = load_all()["c09"]
LIMIT = CONDITION.entry.params
TENTH_NS = 100_000_000
USUAL = {
    "plateau_ratio": 0.95,
    "bulk_share": 0.9,
    "delay_ratio": 0.5,
    "lost": 0.0,
    "rate_bps": 40000000.0,
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
        onset = {"delay_ratio": np.array([start + 1000 - 1000 * i])}
        found.append(detector.step(Window(start, start + TENTH_NS, ["x"], columns, slot, state, onset)))
    return found


def state_of(**changed: float) -> int:
    """Return the state of a single window."""
    return int(judge(changed)[0].state[0])


def test_it_fires_at_the_thresholds():
    least = {"plateau_ratio": LIMIT.min_plateau, "bulk_share": LIMIT.min_bulk_share}
    assert state_of(**least, delay_ratio=LIMIT.min_delay_ratio) == FINDING
    assert state_of(**least, delay_ratio=0.0, lost=LIMIT.min_lost) == FINDING


def test_a_full_port_that_harms_nobody_is_none():
    assert state_of(delay_ratio=0.0) == CLEAR


def test_a_rate_below_the_ceiling_is_none():
    assert state_of(plateau_ratio=0.5) == CLEAR


def test_a_port_full_of_work_is_none():
    assert state_of(bulk_share=0.3) == CLEAR


def test_the_onset_is_when_the_delay_began():
    early, _, flat = judge({"plateau_ratio": 0.2}, {"plateau_ratio": 0.5}, {})
    assert early.state[0] == CLEAR
    assert flat.state[0] == FINDING
    assert flat.onset_ns[0] == 10 * TENTH_NS


def test_the_onset_is_forgotten_with_the_delay():
    *_, again = judge({}, {"delay_ratio": 0.0}, {})
    assert again.onset_ns[0] == 12 * TENTH_NS


def test_more_bulk_scores_higher():
    some, all_ = judge({"bulk_share": 0.6}, {"bulk_share": 1.0})
    assert some.score[0] < all_.score[0]
