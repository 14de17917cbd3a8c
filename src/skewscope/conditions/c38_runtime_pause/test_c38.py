"""Which gaps are pauses, and how they add up."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Verdicts, Window

CONDITION = load_all()["c38"]
LIMIT = CONDITION.entry.params
TENTH_NS = 100_000_000
USUAL = {
    "pause_ratio": 5.0,
    "excess_max_s": 0.2,
    "rounds": 4.0,
    "pause_tail_ratio": 20.0,
}


def judge(*changes: dict[str, float]) -> list[Verdicts]:
    """Return the verdicts on consecutive windows of one scope: the usual one but for the changes."""
    detector = CONDITION.fresh()
    state = {n: np.array([v]) for n, v in detector.STATE.items()}
    slot = np.zeros(1, dtype=np.int64)
    found = []
    for i, changed in enumerate(changes):
        columns = defaultdict(lambda: np.full(1, np.nan))
        columns.update({n: np.array([v]) for n, v in (USUAL | changed).items()})
        start = (10 + i) * TENTH_NS
        onset = {"excess_max_s": np.array([start + 1000 - 1000 * i])}
        found.append(detector.step(Window(start, start + TENTH_NS, ["x"], columns, slot, state, onset)))
    return found


def state_of(**changed: float) -> int:
    """Return the state of a single window."""
    return int(judge(changed)[0].state[0])


QUIET = {"pause_ratio": 0.1, "pause_tail_ratio": 1.0, "excess_max_s": 0.002}


def test_one_long_pause_is_enough_at_the_threshold():
    assert state_of(pause_ratio=LIMIT.enough) == FINDING
    assert state_of(pause_ratio=0.9 * LIMIT.enough) == CLEAR


def test_a_short_pause_that_does_not_come_again_is_none():
    short = {"pause_ratio": 8.0, "excess_max_s": 0.9 * LIMIT.lone_s}
    assert [v.state[0] for v in judge(short, QUIET, QUIET)] == [CLEAR] * 3
    assert [v.state[0] for v in judge(short, QUIET, short)] == [CLEAR, CLEAR, FINDING]
    assert state_of(**(short | {"excess_max_s": LIMIT.lone_s})) == FINDING


def test_a_short_pause_and_small_outliers_are_not_pauses_now_and_then():
    short = {"pause_ratio": 8.0, "excess_max_s": 0.9 * LIMIT.lone_s}
    small = short | {"pause_ratio": 0.9 * LIMIT.min_rest_share * 8.0}
    assert [v.state[0] for v in judge(short, QUIET, small)] == [CLEAR] * 3
    assert [v.state[0] for v in judge(small, QUIET, short)] == [CLEAR] * 3


def test_short_pauses_of_a_fast_engine_come_again_however_many_rounds_they_cost():
    short = {"pause_ratio": 500.0, "excess_max_s": 0.9 * LIMIT.lone_s}
    assert [v.state[0] for v in judge(short, QUIET, short)] == [CLEAR, CLEAR, FINDING]


def test_a_forgotten_pause_is_no_measure_of_the_next():
    long_ago = QUIET | {"rounds": 100.0 / LIMIT.leak}
    short = {"pause_ratio": 2.5, "excess_max_s": 0.9 * LIMIT.lone_s}
    states = [v.state[0] for v in judge({"pause_ratio": 30.0}, long_ago, short, short)]
    assert states == [FINDING, CLEAR, CLEAR, FINDING]


def test_shorter_pauses_add_up():
    states = [v.state[0] for v in judge(*[{"pause_ratio": 2.0}, QUIET] * 2)]
    assert states == [CLEAR, CLEAR, FINDING, CLEAR]


def test_pauses_leak_with_the_rounds_between_them():
    busy = QUIET | {"rounds": 2.0 / LIMIT.leak}
    assert all(v.state[0] == CLEAR for v in judge(*[{"pause_ratio": 2.0}, busy] * 10))


def test_what_does_not_stand_out_of_the_usual_is_no_pause():
    assert state_of(pause_tail_ratio=0.9 * LIMIT.min_tail_ratio) == CLEAR
    assert all(v.state[0] == CLEAR for v in judge(*[{"pause_ratio": 0.9 * LIMIT.min_pause_ratio}] * 30))


def test_the_onset_is_the_first_pause_that_counts():
    assert judge(QUIET, {"pause_ratio": 2.0}, QUIET, {})[-1].onset_ns[0] == 11 * TENTH_NS


def test_an_old_pause_is_forgotten():
    long_ago = QUIET | {"rounds": 10.0 / LIMIT.leak}
    last = judge({}, long_ago, {})[-1]
    assert last.onset_ns[0] == 12 * TENTH_NS - 1000
    assert last.evidence["pauses"][0] == 1.0


def test_longer_pauses_score_higher():
    assert judge({"pause_ratio": 4.0})[0].score[0] < judge({"pause_ratio": 12.0})[0].score[0]
