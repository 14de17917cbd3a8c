"""When a backend starves."""

from __future__ import annotations

import numpy as np

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Window

CONDITION = load_all()["c02"]
USUAL = {"idle_steps": 30.0, "missed_nats": 14.0, "idle_uploads": 0.0}


def judge(**changed: float):
    """Return the verdict on one window of one scope that differs from the usual one as given."""
    columns = {n: np.array([v], dtype=np.float64) for n, v in (USUAL | changed).items()}
    state = {n: np.array([v]) for n, v in CONDITION.detector.STATE.items()}
    window = Window(10**9, 11 * 10**8, ["x"], columns, np.zeros(1, dtype=np.int64), state)
    return CONDITION.fresh().step(window)


def test_an_idle_backend_that_is_passed_by_starves():
    assert judge().state[0] == FINDING


def test_a_short_idle_time_or_few_missed_requests_are_luck():
    assert judge(idle_steps=3.0).state[0] == CLEAR
    assert judge(missed_nats=3.0).state[0] == CLEAR


def test_bodies_that_do_not_come_in_starve_it_as_well():
    assert judge(missed_nats=0.0, idle_uploads=2.0).state[0] == FINDING
