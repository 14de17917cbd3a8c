"""When a gateway holds streams back."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from skewscope.conditions.loader import load_all
from skewscope.core.condition import CLEAR, FINDING, Verdicts, Window

CONDITION = load_all()["c32"]
LIMIT = CONDITION.entry.params
START = 1_000_000_000
USUAL = {"held_share": 0.9, "held_chunks": 4.0, "held_s": 0.1, "streams": 4.0}


def judge(onset_ns: int = 0, **changed: float) -> Verdicts:
    """Return the verdict on one window of one gateway."""
    columns = defaultdict(lambda: np.full(1, np.nan))
    columns.update({n: np.array([v]) for n, v in (USUAL | changed).items()})
    slot, onset = np.zeros(1, dtype=np.int64), {"held_share": np.array([onset_ns])}
    return CONDITION.fresh().step(Window(START, START + 10**8, ["x"], columns, slot, {}, onset))


def test_it_fires_at_the_thresholds():
    found = judge(held_share=LIMIT.min_held_share, held_chunks=LIMIT.min_held_chunks)
    assert found.state[0] == FINDING


def test_a_piece_on_its_way_is_none():
    assert judge(held_chunks=1.0).state[0] == CLEAR


def test_one_stream_of_many_is_none():
    assert judge(held_share=0.25, held_chunks=20.0).state[0] == CLEAR


def test_the_onset_is_when_streams_began_to_be_held():
    assert judge(onset_ns=START - 7).onset_ns[0] == START - 7


def test_more_held_scores_higher():
    assert judge(held_chunks=2.0).score[0] < judge(held_chunks=4.0).score[0]
