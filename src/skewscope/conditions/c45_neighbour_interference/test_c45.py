"""How many processes must be late together."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Verdicts, Window

CONDITION = load_all()["c45"]
LIMIT = CONDITION.entry.params
TENTH_NS = 100_000_000
USUAL = {
    "processes": 4.0,
    "late_processes": 4.0,
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
        onset = {"late_processes": np.array([start + 1000 - 1000 * i])}
        found.append(detector.step(Window(start, start + TENTH_NS, ["x"], columns, slot, state, onset)))
    return found


def state_of(**changed: float) -> int:
    """Return the state of a single window."""
    return int(judge(changed)[0].state[0])


def test_it_fires_at_the_thresholds():
    assert state_of(processes=2.0, late_processes=LIMIT.min_late) == FINDING
    assert state_of(processes=4.0, late_processes=4.0 * LIMIT.min_share) == FINDING


def test_one_late_process_is_its_own_matter():
    assert state_of(late_processes=1.0) == CLEAR


def test_a_minority_is_no_neighbour():
    assert state_of(processes=8.0, late_processes=3.0) == CLEAR


def test_the_onset_stays_while_they_are_late_and_goes_with_it():
    apart = {"late_processes": 1.0}
    assert judge({}, {}, {})[-1].onset_ns[0] == 10 * TENTH_NS + 1000
    assert judge({}, apart, {})[-1].onset_ns[0] == 12 * TENTH_NS - 1000


def test_more_late_processes_score_higher():
    two, four = judge({"processes": 2.0, "late_processes": 2.0}, {})
    assert two.score[0] < four.score[0]
