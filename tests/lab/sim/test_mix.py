"""Mixes: every simulated condition has a rate, suites repeat and keep to their mix."""

from collections import Counter

import pytest

from skewscope.lab.sim import mix, scenario


def test_every_condition_has_a_rate() -> None:
    assert set(mix.rates()) == {str(scenario.load(n)["condition"]) for n in scenario.names()} - {""}


def test_suites_repeat_and_differ_by_seed() -> None:
    assert mix.draw("natural", 1, 50) == mix.draw("natural", 1, 50)
    assert mix.draw("natural", 1, 50) != mix.draw("natural", 2, 50)


def test_natural_suites_hold_what_is_frequent() -> None:
    found = Counter(n.split("_")[0] for n, _ in mix.draw("natural", 3, 2000, controls=0.0))
    assert found["c23"] > 4 * found["c25"]
    even = Counter(n.split("_")[0] for n, _ in mix.draw("balanced", 3, 4700, controls=0.0))
    assert min(even.values()) > 50


def test_shifts_are_at_most_five() -> None:
    natural, shifted = mix.weights("natural", 1), mix.weights("shifted", 1)
    ratios = sorted(shifted[c] / natural[c] for c in natural)
    assert ratios[-1] / ratios[0] <= 25.001
    assert ratios[-1] > 1.5 > ratios[0] * 1.5


def test_unknown_mixes_are_refused() -> None:
    with pytest.raises(ValueError, match="no mix"):
        mix.weights("odd", 1)
