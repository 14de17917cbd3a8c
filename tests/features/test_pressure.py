"""Marks and notifications: which link explains them, and what is usual."""

import numpy as np
import pytest

from skewscope.core.features import FeatureRows
from skewscope.features.pressure import PRESSURE, Pressure
from skewscope.features.transport import PairRows

HOSTS = [1, 2, 3, 4]
RING = [(a, a % 4 + 1) for a in HOSTS] + [(a % 4 + 1, a) for a in HOSTS]
"""Data to the next one, and its acknowledgements."""


def links(pressure, marks=(), told=(), windows=12):
    """Return the columns by host after windows of 100 packets a pair; marks, told: pair -> per window."""
    columns = {
        n: np.array([float(dict(c).get(p, 0)) for p in RING])
        for n, c in (("ce_marks", marks), ("notified", told))
    }
    columns["segments"] = np.full(len(RING), 100.0)
    pairs = PairRows("pair", [str(p) for p in RING], columns)
    rows = FeatureRows("link", [str(h) for h in HOSTS], {n: np.zeros(4) for n in PRESSURE})
    for _ in range(windows):
        pressure.write(rows, HOSTS, {p: i for i, p in enumerate(RING)}, pairs, 0.1)
    return rows.columns


@pytest.fixture
def usual():
    known = Pressure()
    links(known)
    return known


def test_a_queue_towards_a_host_marks_all_that_goes_there(usual):
    found = links(usual, {(1, 2): 30, (3, 2): 30})
    assert found["marked_fit"].argmax() == 1
    assert found["marked_fit"][1] > 0.8
    assert found["marked_share"][1] == pytest.approx(0.3)
    assert sorted(found["marked_fit"])[-2] < 0.5


def test_notifications_alone_say_the_same(usual):
    found = links(usual, told={(1, 2): 20, (3, 2): 20})
    assert found["marked_fit"].argmax() == 1
    assert found["notified_hz"][1] == pytest.approx(400.0)


def test_marks_everywhere_are_no_links(usual):
    assert links(usual, dict.fromkeys(RING, 30))["marked_fit"].max() < 0.5


def test_usual_marks_and_few_ones_are_nothing():
    steady = Pressure()
    assert links(steady, {(1, 2): 10, (3, 2): 10}, windows=30)["marked_fit"].max() == 0.0
    assert links(steady, {(1, 2): 11, (3, 2): 11})["marked_fit"].max() == 0.0
