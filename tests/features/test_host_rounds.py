"""Rounds as one host's tap shows them."""

from __future__ import annotations

import numpy as np

from skewscope.features.host_rounds import HostRounds
from tests.features.stream_tables import ENGINE, Wire, ns


def rounds_of(wire: Wire, seconds: float) -> HostRounds:
    found = HostRounds()
    for slice_ in wire.slices(seconds):
        found.absorb(slice_, wire.graph())
    return found


def test_the_last_round_before_a_time_is_found():
    wire = Wire()
    for i in range(10):
        wire.round(ENGINE, 0.02 + 0.05 * i, 100 + i, 1000 + i)
    recent = rounds_of(wire, 0.6).recent
    at = recent.before(np.array([ENGINE, ENGINE, 1]), np.array([ns(0.2), ns(0.001), ns(0.2)]))
    assert recent.end_ns[at[0]] == ns(0.17)
    assert at[1:].tolist() == [-1, -1]


def test_a_round_is_found_by_its_number():
    wire = Wire()
    for i in range(4):
        wire.round(ENGINE, 0.02 + 0.05 * i, 7 + i, 64)
    recent = rounds_of(wire, 0.3).recent
    ends = recent.ends_of(np.array([ENGINE, ENGINE, 1]), np.array([8, 99, 8]))
    assert ends.tolist() == [ns(0.07), 0, 0]


def test_the_size_that_a_share_of_rounds_reach():
    wire = Wire()
    for i, size in enumerate((50, 900, 900, 50, 50)):
        wire.round(ENGINE, 0.02 + 0.02 * i, i + 1, size)
    recent = rounds_of(wire, 0.3).recent
    assert recent.size_within(ENGINE, ns(0), ns(1), 0.3) == 900
    assert recent.size_within(ENGINE, ns(0), ns(1), 0.6) == 50
    assert recent.size_within(ENGINE, ns(2), ns(3), 0.3) == 0


def test_old_rounds_are_dropped():
    wire = Wire()
    for i in range(80):
        wire.round(ENGINE, 0.05 + 0.1 * i, i + 1, 10)
    recent = rounds_of(wire, 8.0).recent
    assert (recent.host == ENGINE).sum() <= 31
