"""Noise: levels, pairing of runs, what ranks share."""

import statistics

import pytest

from skewscope.lab.bed.noise import LEVELS, Noise


def series(noise, steps=3000):
    out = []
    for _ in range(steps):
        noise.next_step()
        out.append(noise.factor())
    return out


@pytest.mark.parametrize("name", ["low", "mid", "high"])
def test_the_spread_is_that_of_the_level(name):
    level = LEVELS[name]
    found = sorted(series(Noise(name, 1, 0)))
    middle = found[len(found) // 10 : -len(found) // 10]
    asked = (level.own**2 + level.common**2) ** 0.5
    # The middle 80 % of a normal distribution has 0.66 of its standard deviation.
    assert statistics.stdev(middle) / 0.66 == pytest.approx(asked, rel=0.15)
    assert statistics.median(found) == pytest.approx(1.0, abs=0.03)
    assert found[-1] > 1.5 or name == "low"


def test_a_restart_gives_the_same_series():
    noise = Noise("mid", 7, 2)
    first = series(noise, 50)
    noise.restart()
    assert series(noise, 50) == first


def test_ranks_share_the_step_and_differ_besides():
    a, b = series(Noise("mid", 3, 0)), series(Noise("mid", 3, 1))
    level = LEVELS["mid"]
    asked = level.common**2 / (level.common**2 + level.own**2)
    assert a != b
    assert statistics.correlation(a, b) == pytest.approx(asked, abs=0.12)


def test_without_noise_the_factor_is_one():
    assert set(series(Noise("none", 1, 0), 20)) == {1.0}
