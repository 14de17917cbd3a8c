"""When an upload is one of a model."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Verdicts, Window

CONDITION = load_all()["c50"]
LIMIT = CONDITION.entry.params
START = 1_000_000_000
USUAL = {"foreign_bytes": 1e9, "foreign_bps": 1e8, "foreign_s": 80.0, "foreign_share": 0.1}


def judge(onset_ns: int = 0, **changed: float) -> Verdicts:
    """Return the verdict on one window of one host."""
    columns = defaultdict(lambda: np.full(1, np.nan))
    columns.update({n: np.array([v]) for n, v in (USUAL | changed).items()})
    slot, onset = np.zeros(1, dtype=np.int64), {"foreign_bytes": np.array([onset_ns])}
    return CONDITION.fresh().step(Window(START, START + 10**8, ["x"], columns, slot, {}, onset))


def test_it_fires_at_the_thresholds():
    least = {"foreign_bytes": LIMIT.min_bytes, "foreign_bps": LIMIT.min_bps, "foreign_s": LIMIT.min_s}
    assert judge(**least).state[0] == FINDING


@pytest.mark.parametrize("few", [{"foreign_bytes": 1e6}, {"foreign_bps": 1e6}, {"foreign_s": 1.0}])
def test_less_of_anything_is_none(few):
    assert judge(**few).state[0] == CLEAR


def test_the_share_of_a_busy_host_does_not_matter():
    assert judge(foreign_share=0.001).state[0] == FINDING


def test_the_onset_is_the_first_byte():
    assert judge(onset_ns=START - 7).onset_ns[0] == START - 7


def test_more_scores_higher():
    assert judge(foreign_bytes=5e6).score[0] < judge(foreign_bytes=1e10).score[0] < 1.0
