"""How long a closed window counts."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Verdicts, Window

CONDITION = load_all()["c05"]
LIMIT = CONDITION.entry.params
TENTH_NS = 100_000_000
USUAL = {
    "zero_window_s": 0.5,
    "zero_windows": 2.0,
    "segments_down": 40.0,
    "peers_zero_window_s": 0.0,
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


def test_it_fires_at_the_threshold():
    assert state_of(zero_window_s=LIMIT.min_closed_s) == FINDING
    assert state_of(zero_window_s=0.9 * LIMIT.min_closed_s) == CLEAR


def test_a_leg_without_data_is_not_judged_slow():
    assert state_of(segments_down=0.0, zero_windows=0.0) == CLEAR


def test_the_onset_is_the_first_closed_window():
    assert judge({})[0].onset_ns[0] == 10 * TENTH_NS + 1000


def test_a_longer_closure_scores_higher():
    short, long = judge({"zero_window_s": LIMIT.min_closed_s}, {"zero_window_s": 1.5})
    assert short.score[0] < long.score[0]
