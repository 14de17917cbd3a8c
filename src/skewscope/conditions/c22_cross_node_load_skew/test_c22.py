"""When work has gathered on one replica."""

from __future__ import annotations

import numpy as np

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Window

CONDITION = load_all()["c22"]
USUAL = {
    "backends": 2.0,
    "load_skew": 1.8,
    "load_gap": 6.0,
    "queue_max": 3.0,
    "queue_min": 0.0,
    "share_evidence": 1.0,
    "busy_step_ratio": 1.0,
}


def judge(**changed: float):
    """Return the verdict on one window of one scope that differs from the usual one as given."""
    columns = {n: np.array([v], dtype=np.float64) for n, v in (USUAL | changed).items()}
    state = {n: np.array([v]) for n, v in CONDITION.detector.STATE.items()}
    window = Window(10**9, 11 * 10**8, ["x"], columns, np.zeros(1, dtype=np.int64), state)
    return CONDITION.fresh().step(window)


def test_a_queue_beside_an_idle_replica_is_skew():
    assert judge().state[0] == FINDING


def test_uneven_arrivals_explain_it():
    assert judge(share_evidence=12.0).state[0] == CLEAR


def test_a_queue_everywhere_is_a_small_pool():
    assert judge(queue_min=2.0, load_gap=2.0).state[0] == CLEAR


def test_equal_load_is_none():
    assert judge(load_skew=1.1).state[0] == CLEAR
