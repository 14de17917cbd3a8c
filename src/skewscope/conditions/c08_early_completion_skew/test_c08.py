"""When freed slots count as unused."""

from __future__ import annotations

import numpy as np

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Window

CONDITION = load_all()["c08"]
USUAL = {
    "open_requests": 4.0,
    "active_streams": 2.0,
    "active_share": 0.3,
    "stall_steps": 20.0,
    "empty_steps": 15.0,
    "ttft_ref_steps": 2.0,
    "freed_slots": 4.0,
    "gateway": 0.0,
}


def judge(**changed: float):
    """Return the verdict on one window of one scope that differs from the usual one as given."""
    columns = {n: np.array([v], dtype=np.float64) for n, v in (USUAL | changed).items()}
    state = {n: np.array([v]) for n, v in CONDITION.detector.STATE.items()}
    window = Window(10**9, 11 * 10**8, ["x"], columns, np.zeros(1, dtype=np.int64), state)
    return CONDITION.fresh().step(window)


def test_empty_slots_beside_a_queue_are_skew():
    assert judge().state[0] == FINDING


def test_nobody_waits_then_nothing_is_wrong():
    assert judge(open_requests=0.0).state[0] == CLEAR


def test_an_idle_engine_is_not_judged():
    assert judge(active_streams=0.0).state[0] == CLEAR
