"""What counts as jitter of the serving layer."""

from __future__ import annotations

import numpy as np

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Window

CONDITION = load_all()["c06"]
USUAL = {
    "egress_jitter_share": 0.8,
    "egress_lag_share": 0.4,
    "egress_lag_low_share": 0.0,
    "ingress_lag_share": 0.0,
    "chunk_gap_spread": 1.0,
    "round_gap_p90_ratio": 1.0,
    "active_streams": 4.0,
}


def judge(**changed: float):
    """Return the verdict on one window of one scope that differs from the usual one as given."""
    columns = {n: np.array([v], dtype=np.float64) for n, v in (USUAL | changed).items()}
    state = {n: np.array([v]) for n, v in CONDITION.detector.STATE.items()}
    window = Window(10**9, 11 * 10**8, ["x"], columns, np.zeros(1, dtype=np.int64), state)
    return CONDITION.fresh().step(window)


def test_uneven_output_beside_regular_rounds_is_jitter():
    assert judge().state[0] == FINDING


def test_irregular_rounds_explain_it():
    assert judge(round_gap_p90_ratio=2.0).state[0] == CLEAR


def test_a_lag_of_all_pieces_is_not_jitter():
    assert judge(egress_lag_share=0.9, egress_lag_low_share=0.8).state[0] == CLEAR


def test_a_timer_is_jitter_however_long_its_queue():
    assert judge(egress_lag_share=9.0, chunk_gap_spread=0.02).state[0] == FINDING
    assert judge(egress_lag_share=9.0, chunk_gap_spread=2.0).state[0] == CLEAR
