"""What counts as a host that holds tokens back."""

from __future__ import annotations

import numpy as np

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Window

CONDITION = load_all()["c17"]
USUAL = {
    "egress_lag_share": 0.5,
    "egress_lag_low_share": 0.4,
    "egress_lag_ratio": 12.0,
    "ingress_lag_share": 0.0,
    "chunk_gap_spread": 0.1,
    "round_gap_ratio": 1.0,
    "active_streams": 4.0,
}


def judge(**changed: float):
    """Return the verdict on one window of one scope that differs from the usual one as given."""
    columns = {n: np.array([v], dtype=np.float64) for n, v in (USUAL | changed).items()}
    state = {n: np.array([v]) for n, v in CONDITION.detector.STATE.items()}
    window = Window(10**9, 11 * 10**8, ["x"], columns, np.zeros(1, dtype=np.int64), state)
    return CONDITION.fresh().step(window)


def test_all_pieces_late_beside_rounds_on_time_are_the_host():
    assert judge().state[0] == FINDING


def test_late_rounds_explain_it():
    assert judge(round_gap_ratio=1.6).state[0] == CLEAR


def test_early_pieces_that_stay_early_are_jitter():
    assert judge(egress_lag_low_share=0.0).state[0] == CLEAR


def test_output_that_queues_for_steps_is_the_host_unless_a_timer_paces_it():
    assert judge(egress_lag_share=6.0, egress_lag_low_share=0.0, chunk_gap_spread=1.5).state[0] == FINDING
    assert judge(egress_lag_share=6.0, egress_lag_low_share=0.0, chunk_gap_spread=0.02).state[0] == CLEAR


def test_requests_that_wait_before_an_idle_engine_are_the_host():
    assert judge(egress_lag_share=0.0, ingress_lag_share=4.0, active_streams=0.0).state[0] == FINDING
