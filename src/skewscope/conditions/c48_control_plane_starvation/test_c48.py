"""When a heartbeat is starved."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Verdicts, Window

CONDITION = load_all()["c48"]
LIMIT = CONDITION.entry.params
START = 1_000_000_000
USUAL = {"gap_ratio": 4.0, "late_beats": 2.0, "host_packets": 100.0, "beat_s": 0.2}


def judge(onset_ns: int = 0, **changed: float) -> Verdicts:
    """Return the verdict on one window of one host."""
    columns = defaultdict(lambda: np.full(1, np.nan))
    columns.update({n: np.array([v]) for n, v in (USUAL | changed).items()})
    slot, onset = np.zeros(1, dtype=np.int64), {"gap_ratio": np.array([onset_ns])}
    return CONDITION.fresh().step(Window(START, START + 10**8, ["x"], columns, slot, {}, onset))


def test_it_fires_at_the_thresholds():
    assert judge(gap_ratio=LIMIT.min_gap_ratio, late_beats=LIMIT.min_late_beats).state[0] == FINDING


def test_one_late_beat_is_a_restart():
    assert judge(late_beats=1.0).state[0] == CLEAR


def test_a_lost_beat_now_and_then_is_none():
    assert judge(gap_ratio=2.0, late_beats=5.0).state[0] == CLEAR


def test_a_host_that_is_silent_altogether_is_another_matter():
    assert judge(host_packets=0.0).state[0] == CLEAR


def test_the_onset_is_when_the_first_beat_was_due():
    assert judge(onset_ns=START - 7).onset_ns[0] == START - 7


def test_later_scores_higher():
    assert judge(gap_ratio=3.0).score[0] < judge(gap_ratio=5.0).score[0] < 1.0
