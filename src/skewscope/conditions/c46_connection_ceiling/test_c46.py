"""When a gateway is at its limit."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Verdicts, Window

CONDITION = load_all()["c46"]
LIMIT = CONDITION.entry.params
START = 1_000_000_000
USUAL = {"queued": 3.0, "queued_min": 2.0, "plateau": 1.0, "upstream": 4.0}


def judge(onset_ns: int = 0, **changed: float) -> Verdicts:
    """Return the verdict on one window of one gateway."""
    columns = defaultdict(lambda: np.full(1, np.nan))
    columns.update({n: np.array([v]) for n, v in (USUAL | changed).items()})
    slot, onset = np.zeros(1, dtype=np.int64), {"queued": np.array([onset_ns])}
    return CONDITION.fresh().step(Window(START, START + 10**8, ["x"], columns, slot, {}, onset))


def test_it_fires_at_the_thresholds():
    found = judge(queued=1.0, queued_min=LIMIT.min_queued, plateau=LIMIT.min_plateau)
    assert found.state[0] == FINDING


def test_a_queue_that_empties_is_none():
    assert judge(queued_min=0.0).state[0] == CLEAR


def test_a_number_at_engines_that_moves_is_no_ceiling():
    assert judge(plateau=0.5).state[0] == CLEAR


def test_the_onset_is_when_the_first_began_to_wait():
    assert judge(onset_ns=START - 7).onset_ns[0] == START - 7
    assert judge().onset_ns[0] == START


def test_a_longer_queue_scores_higher():
    assert judge(queued=1.0).score[0] < judge(queued=3.0).score[0]
