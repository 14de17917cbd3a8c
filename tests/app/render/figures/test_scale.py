"""Axes."""

import math

from skewscope.app.render.figures.scale import share, step_for, time_ticks


def test_ticks_are_round_and_inside():
    ticks = time_ticks(0.0, 0.098, 4)
    assert [t.label for t in ticks] == ["0", "25 ms", "50 ms", "75 ms"]
    assert all(0 <= t.at <= 100 for t in ticks)


def test_ticks_with_sign_and_offset():
    ticks = time_ticks(24.0, 42.0, 5, sign=True)
    assert [t.label for t in ticks] == ["+25 s", "+30 s", "+35 s", "+40 s"]


def test_no_span_no_ticks():
    assert time_ticks(1.0, 1.0) == []
    assert step_for(0.0, 3) == 1.0
    assert step_for(math.inf, 3) == 1.0


def test_share_is_clipped():
    assert share(5, 0, 10) == 500
    assert share(-5, 0, 10) == 0
    assert share(50, 0, 10, 100.0) == 100
    assert share(5, 3, 3) == 0
