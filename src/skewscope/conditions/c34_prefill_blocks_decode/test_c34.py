"""Which pauses are a prefill that blocks."""

from __future__ import annotations

import numpy as np

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Window

CONDITION = load_all()["c34"]
USUAL = {
    "common_pause_s": 0.3,
    "pause_ratio": 6.0,
    "pause_size_ratio": 40.0,
    "pause_decode_ratio": 8.0,
    "chunk_gap_ref_s": 0.05,
}


def judge(**changed: float):
    """Return the verdict on one window of one scope that differs from the usual one as given."""
    columns = {n: np.array([v], dtype=np.float64) for n, v in (USUAL | changed).items()}
    state = {n: np.array([v]) for n, v in CONDITION.detector.STATE.items()}
    window = Window(10**9, 11 * 10**8, ["x"], columns, np.zeros(1, dtype=np.int64), state)
    return CONDITION.fresh().step(window)


def test_a_pause_beside_a_huge_round_is_a_blocking_prefill():
    assert judge().state[0] == FINDING


def test_a_pause_without_a_large_round_is_not():
    assert judge(pause_size_ratio=1.0).state[0] == CLEAR
    assert judge(pause_size_ratio=0.0).state[0] == CLEAR


def test_one_short_pause_is_not_enough():
    assert judge(pause_ratio=2.2).state[0] == CLEAR


def test_the_same_pause_in_two_windows_counts_once():
    detector = CONDITION.fresh()
    state = {n: np.array([v]) for n, v in detector.STATE.items()}
    columns = {n: np.array([v]) for n, v in (USUAL | {"pause_ratio": 2.5}).items()}
    onset = {"common_pause_s": np.array([10**9], dtype=np.int64)}
    slot = np.zeros(1, dtype=np.int64)
    blocked = [
        detector.step(Window(at, at + 1000, ["x"], columns, slot, state, onset)).evidence["blocked_steps"][0]
        for at in (10**9, 10**9 + 1000)
    ]
    assert blocked[1] < blocked[0] + 0.1
