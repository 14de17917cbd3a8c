"""Which outages are those of a link."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Verdicts, Window

CONDITION = load_all()["c42"]
LIMIT = CONDITION.entry.params
TENTH_NS = 100_000_000
USUAL = {
    "outage_s": 0.6,
    "outage_smallest_bytes": 66.0,
    "outage_fit": 1.0,
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
        onset = {"outage_s": np.array([start + 1000 - 1000 * i])}
        found.append(detector.step(Window(start, start + TENTH_NS, ["x"], columns, slot, state, onset)))
    return found


def state_of(**changed: float) -> int:
    """Return the state of a single window."""
    return int(judge(changed)[0].state[0])


def test_it_fires_at_the_thresholds():
    assert state_of(outage_fit=LIMIT.min_fit, outage_smallest_bytes=LIMIT.max_smallest_bytes) == FINDING
    assert state_of(outage_fit=0.9 * LIMIT.min_fit) == CLEAR


def test_no_outage_no_finding():
    assert state_of(outage_s=0.0) == CLEAR


def test_an_outage_of_large_packets_only_is_a_size_limit():
    assert state_of(outage_smallest_bytes=1448.0) == CLEAR


def test_the_onset_is_the_last_crossing_before_the_outage():
    assert judge({})[0].onset_ns[0] == 10 * TENTH_NS + 1000


def test_a_better_fit_scores_higher():
    shared, sole = judge({"outage_fit": LIMIT.min_fit}, {})
    assert shared.score[0] < sole.score[0]
