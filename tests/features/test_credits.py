"""Grants: whose turn it was when a message went."""

import numpy as np

from skewscope.features.credits import Credits


def grants(plan, credits=None, step=1):
    """Feed (time, "c" clear to send or "d" data, step?) rows of one connection; return the answers."""
    rows = [(r if len(r) == 3 else (*r, step)) for r in plan]
    ts, kind, steps = zip(*rows, strict=True)
    clears = np.array([k == "c" for k in kind])
    credits = credits or Credits()
    return credits.rows(np.array(ts), np.zeros(len(ts), np.int64), clears, np.array(steps)).tolist()


def test_data_behind_a_grant_that_was_waited_for_knows_its_time():
    assert grants([(10, "c"), (11, "d"), (20, "c"), (21, "d")]) == [1, 10, 1, 20]


def test_a_grant_ahead_was_not_waited_for():
    assert grants([(10, "c"), (12, "c"), (20, "d"), (30, "c"), (31, "d")]) == [1, 0, 10, 0, 0]


def test_grants_open_when_the_capture_began_are_found_out_when_they_run_out():
    # Three were open: the count goes to -3 when none is left, and the next grant is seen to be awaited.
    plan = [(1, "d"), (2, "d"), (3, "d"), (10, "c"), (11, "d"), (12, "c"), (13, "c"), (14, "d")]
    assert grants(plan) == [0, 0, 0, 1, 10, 1, 0, 12]


def test_a_lost_data_message_is_forgotten_with_its_step():
    credits = Credits()
    first = grants([(10, "c"), (20, "c"), (21, "d")], credits, step=1)
    assert first == [1, 0, 10]
    second = grants([(30, "c"), (31, "d")], credits, step=2)
    third = grants([(40, "c"), (41, "d")], credits, step=3)
    assert third == [1, 40], second


def test_connections_do_not_mix():
    credits = Credits()
    ts, conn = np.array([1, 2, 3, 4]), np.array([0, 5, 0, 5])
    clears = np.array([True, True, False, False])
    assert credits.rows(ts, conn, clears, np.ones(4, np.int64)).tolist() == [1, 1, 1, 2]
