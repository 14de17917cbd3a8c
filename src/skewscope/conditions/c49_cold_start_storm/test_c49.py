"""When fetching is a storm."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Verdicts, Window

CONDITION = load_all()["c49"]
LIMIT = CONDITION.entry.params
START = 1_000_000_000
USUAL = {"fetchers": 4.0, "fetched_bytes": 1e9, "fetched_total_bytes": 4e9, "fetched_spread": 1.1}


def judge(onset_ns: int = 0, **changed: float) -> Verdicts:
    """Return the verdict on one window of one source."""
    columns = defaultdict(lambda: np.full(1, np.nan))
    columns.update({n: np.array([v]) for n, v in (USUAL | changed).items()})
    slot, onset = np.zeros(1, dtype=np.int64), {"fetchers": np.array([onset_ns])}
    return CONDITION.fresh().step(Window(START, START + 10**8, ["x"], columns, slot, {}, onset))


def test_it_fires_at_the_thresholds():
    found = judge(fetchers=LIMIT.min_fetchers, fetched_bytes=LIMIT.min_bytes, fetched_spread=LIMIT.max_spread)
    assert found.state[0] == FINDING


@pytest.mark.parametrize("less", [{"fetchers": 1.0}, {"fetched_bytes": 1e6}, {"fetched_spread": 9.0}])
def test_less_is_none(less):
    assert judge(**less).state[0] == CLEAR


def test_the_onset_is_when_the_second_began():
    assert judge(onset_ns=START - 7).onset_ns[0] == START - 7


def test_more_hosts_score_higher():
    assert judge(fetchers=2.0).score[0] < judge(fetchers=3.0).score[0] < 1.0
