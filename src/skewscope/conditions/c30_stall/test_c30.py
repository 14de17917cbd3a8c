"""When silence is a standstill, and whose."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Verdicts, Window

CONDITION = load_all()["c30"]
LIMIT = CONDITION.entry.params
TENTH_NS = 100_000_000
USUAL = {
    "silence_ratio": 20.0,
    "demand": 3.0,
    "silence_s": 0.5,
    "left": 0.0,
    "behind_s": 0.2,
    "left_first": 0.0,
    "stopped_first": 1.0,
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
        onset = {"silence_s": np.array([start + 1000 - 1000 * i])}
        found.append(detector.step(Window(start, start + TENTH_NS, ["x"], columns, slot, state, onset)))
    return found


def state_of(**changed: float) -> int:
    """Return the state of a single window."""
    return int(judge(changed)[0].state[0])


def test_it_fires_at_the_threshold():
    assert state_of(silence_ratio=LIMIT.min_silence_ratio) == FINDING
    assert state_of(silence_ratio=LIMIT.min_silence_ratio - 1) == CLEAR


def test_with_nothing_in_hand_silence_is_idleness():
    assert state_of(demand=0.0, silence_ratio=1e4) == CLEAR


def test_a_member_that_left_needs_less_silence():
    gone = {"left": 4.0, "left_first": 1.0, "silence_ratio": LIMIT.min_silence_left}
    assert state_of(**gone) == FINDING
    assert state_of(silence_ratio=LIMIT.min_silence_left) == CLEAR


def test_who_merely_waits_is_not_accused():
    assert state_of(stopped_first=0.0) == CLEAR
    assert state_of(left=4.0, left_first=0.0) == CLEAR


def test_the_onset_is_the_last_message():
    assert judge({})[0].onset_ns[0] == 10 * TENTH_NS + 1000


def test_who_left_is_surer_than_who_fell_silent_and_a_lead_is_surer_than_none():
    left = {"left": 4.0, "left_first": 1.0}
    gone, ahead, tied = judge(left, {}, {"behind_s": 0.0})
    assert gone.score[0] > ahead.score[0] > tied.score[0]
