"""Who alone is late now and then in the first rounds."""

from __future__ import annotations

import numpy as np
import pytest

from skewscope.features.dispersion import ENOUGH, NOBODY, RUN_UP, Dispersion, among_others

ROUND_S = 0.02
TEAM = (1, 2, 3)
ALL_REDUCE, BROADCAST = 4, 6


def told(team, spread_s=0.0005, kinds=None):
    """Return the judge that has learned the excess (in rounds) of each member."""
    made = Dispersion()
    for member, excess in team.items():
        count = len(excess)
        kind = np.array(kinds or [ALL_REDUCE] * count)
        ts = np.arange(1, count + 1) * 1000
        made.learn(member, kind, np.array(excess) * ROUND_S, np.full(count, spread_s), ts)
    return made


def quota(count=20):
    """Every third round takes a round and a half more."""
    return [0.0, 0.03, 1.5, 0.01] * (count // 4)


def test_a_quota_that_runs_out_now_and_then_is_named_and_dated():
    team = {1: [0.0] * 20, 2: quota(), 3: [-0.1] * 20}
    member, (ratio, late, level), since = told(team).judge(TEAM, ROUND_S)
    assert member == 2
    assert (ratio, late, level) == pytest.approx((0.385, 0.25, 0.75), abs=0.01)
    assert since == 3000


def test_what_two_members_show_is_the_works():
    assert told({1: quota(), 2: quota(), 3: [0.0] * 20}).judge(TEAM, ROUND_S) == NOBODY


def test_what_the_others_show_among_themselves_counts_against_it():
    team = {1: [0.0] * 20, 2: quota(), 3: [0.0] * 20}
    assert told(team, spread_s=0.3 * ROUND_S).judge(TEAM, ROUND_S) == NOBODY


def test_a_single_pause_does_not_add_up():
    team = {1: [0.0] * 20, 2: [0.0] * 19 + [40.0], 3: [0.0] * 20}
    assert told(team).judge(TEAM, ROUND_S) == NOBODY


def test_rounds_of_different_kinds_are_kept_apart():
    """Level in announcements and late in every all-reduce: more work, no coming and going."""
    kinds = [BROADCAST, ALL_REDUCE] * 20
    team = {1: [0.0] * 40, 2: [0.0, 0.5] * 20, 3: [0.0] * 40}
    member, (_, late, level), _ = told(team, kinds=kinds).judge(TEAM, ROUND_S)
    assert (member, late, level) == (2, 1.0, 0.0)


def test_too_few_rounds_or_members_say_nothing():
    assert told({1: [0.0] * 8, 2: quota(ENOUGH - 4), 3: [0.0] * 8}).judge(TEAM, ROUND_S) == NOBODY
    assert told({2: quota()}).judge(TEAM, ROUND_S) == NOBODY
    assert told({1: [0.0] * 20, 2: quota()}).judge(TEAM, float("inf")) == NOBODY


def test_a_group_whose_first_rounds_were_steady_is_left_alone():
    made = told({m: [0.0] * RUN_UP for m in TEAM})
    assert made.wants(2)
    assert made.judge(TEAM, ROUND_S) == NOBODY
    assert not any(made.wants(m) for m in TEAM)


def test_an_unsteady_member_is_watched_until_it_is_steady():
    made = told({1: [0.0] * RUN_UP, 2: quota(RUN_UP), 3: [0.0] * RUN_UP})
    assert made.judge(TEAM, ROUND_S)[0] == 2
    assert made.wants(2)
    calm = np.zeros(RUN_UP)
    made.learn(2, np.full(RUN_UP, ALL_REDUCE), calm, calm, np.arange(RUN_UP))
    assert made.judge(TEAM, ROUND_S) == NOBODY
    assert not made.wants(2)


def test_peers_of_a_row_are_the_others_of_its_round():
    nan = np.nan
    compared, spread = among_others(np.array([1.0, 2.0, 4.0, 3.0, nan]), np.array([0, 3]))
    assert compared.tolist() == [True, True, True, False, True]
    assert spread == pytest.approx([2.0, 3.0, 1.0, nan, nan], nan_ok=True)
