"""How long a closed window inside the cluster counts."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Verdicts, Window

CONDITION = load_all()["c26"]
LIMIT = CONDITION.entry.params
TENTH_NS = 100_000_000
USUAL = {
    "zero_window_s": 0.1,
    "zero_windows": 1.0,
    "inner": 1.0,
    "not_ready": 0.0,
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
        onset = {"zero_windows": np.array([start + 1000 - 1000 * i])}
        found.append(detector.step(Window(start, start + TENTH_NS, ["x"], columns, slot, state, onset)))
    return found


def state_of(**changed: float) -> int:
    """Return the state of a single window."""
    return int(judge(changed)[0].state[0])


def test_it_fires_after_three_windows_of_closed_time():
    states = [v.state[0] for v in judge(*[{}] * 5)]
    assert states[:2] == [CLEAR, CLEAR]
    assert states[3:] == [FINDING, FINDING]


def test_short_closures_leak_away():
    shut, open_ = {"zero_window_s": 0.02}, {"zero_window_s": 0.0, "zero_windows": 0.0}
    assert all(v.state[0] == CLEAR for v in judge(*[shut, open_] * 40))


def test_a_client_is_not_judged():
    assert all(v.state[0] == CLEAR for v in judge(*[{"inner": 0.0}] * 10))


def test_the_onset_is_the_first_closure_until_it_is_forgotten():
    open_ = {"zero_window_s": 0.0, "zero_windows": 0.0}
    assert judge(*[{}] * 5)[-1].onset_ns[0] == 10 * TENTH_NS + 1000
    again = judge(*[{}] * 5, *[open_] * 60, *[{}] * 5)[-1]
    assert again.state[0] == FINDING
    assert again.onset_ns[0] == 75 * TENTH_NS + 1000 - 65_000


def test_a_longer_closure_scores_higher():
    *_, early, _, _, _, late = judge(*[{}] * 9)
    assert 0.0 < early.score[0] < late.score[0]


def test_refused_packets_are_found_without_a_closed_window():
    open_ = {"zero_window_s": 0.0, "zero_windows": 0.0}
    refused = open_ | {"not_ready": LIMIT.min_refused}
    assert state_of(**refused) == FINDING
    assert all(v.state[0] == CLEAR for v in judge(*[open_ | {"not_ready": 0.1}] * 40))
    assert state_of(**refused, inner=0.0) == CLEAR
