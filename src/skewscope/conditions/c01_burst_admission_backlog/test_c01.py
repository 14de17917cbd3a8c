"""Which queues count as a backlog."""

from __future__ import annotations

import numpy as np

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Window

CONDITION = load_all()["c01"]
USUAL = {
    "open_requests": 8.0,
    "active_streams": 8.0,
    "backlog_ratio": 1.0,
    "oldest_open_s": 1.5,
    "oldest_open_steps": 20.0,
    "ttft_ref_steps": 2.0,
    "full_steps": 8.0,
    "gateway": 0.0,
}


def judge(**changed: float):
    """Return the verdict on one window of one scope that differs from the usual one as given."""
    columns = {n: np.array([v], dtype=np.float64) for n, v in (USUAL | changed).items()}
    state = {n: np.array([v]) for n, v in CONDITION.detector.STATE.items()}
    window = Window(10**9, 11 * 10**8, ["x"], columns, np.zeros(1, dtype=np.int64), state)
    return CONDITION.fresh().step(window)


def test_a_long_queue_at_a_full_engine_is_a_backlog():
    assert judge().state[0] == FINDING


def test_a_queue_that_is_being_admitted_is_none():
    assert judge(full_steps=1.0).state[0] == CLEAR


def test_an_engine_that_makes_no_steps_has_none():
    assert judge(oldest_open_steps=0.0, full_steps=0.0).state[0] == CLEAR


def test_long_prompts_need_their_steps():
    assert judge(ttft_ref_steps=10.0).state[0] == CLEAR


def test_a_gateway_is_not_judged():
    assert judge(gateway=1.0).state[0] == CLEAR
