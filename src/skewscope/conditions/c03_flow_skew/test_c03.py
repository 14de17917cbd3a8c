"""Which shares count as skewed."""

from __future__ import annotations

import numpy as np

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Window

CONDITION = load_all()["c03"]
USUAL = {
    "backends": 2.0,
    "share_evidence": 14.0,
    "share_max_ratio": 1.9,
    "share_min_ratio": 0.1,
    "changed_requests": 20.0,
    "load_skew": 1.5,
    "whole_evidence": 0.0,
    "load_gap": 2.0,
    "queue_max": 0.5,
    "queue_min": 0.2,
}
FIRST = {"share_evidence": 8.0, "whole_evidence": 8.0, "load_skew": 1.9, "load_gap": 5.0, "queue_max": 1.2}


def judge(**changed: float):
    """Return the verdict on one window of one scope that differs from the usual one as given."""
    columns = {n: np.array([v], dtype=np.float64) for n, v in (USUAL | changed).items()}
    state = {n: np.array([v]) for n, v in CONDITION.detector.STATE.items()}
    window = Window(10**9, 11 * 10**8, ["x"], columns, np.zeros(1, dtype=np.int64), state)
    return CONDITION.fresh().step(window)


def test_an_improbable_share_with_load_is_skew():
    assert judge().state[0] == FINDING


def test_an_improbable_share_that_evens_out_the_load_is_none():
    assert judge(load_skew=1.02).state[0] == CLEAR


def test_a_small_change_is_none_however_sure():
    assert judge(share_evidence=60.0, share_max_ratio=1.2).state[0] == CLEAR


def test_more_backends_need_more_evidence():
    assert judge(backends=12.0, load_skew=5.0).state[0] == CLEAR


def test_all_requests_since_the_first_packet_count_where_work_piles_up():
    assert judge(**FIRST, queue_min=0.05).state[0] == FINDING


def test_uneven_shares_that_both_backends_cope_with_are_none():
    assert judge(**FIRST | {"load_gap": 1.5, "queue_max": 0.3}, queue_min=0.1).state[0] == CLEAR


def test_once_shares_are_usual_the_requests_so_far_no_longer_count():
    assert judge(**FIRST | {"whole_evidence": 0.0}, queue_min=0.05).state[0] == CLEAR


def test_more_backends_need_more_of_all_requests_too():
    assert judge(**FIRST | {"load_skew": 4.0}, backends=4.0, queue_min=0.05).state[0] == CLEAR
