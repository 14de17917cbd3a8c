"""Scenarios are values: equal ones are one, whatever they are called."""

from dataclasses import replace

import pytest

from skewscope.core.scenario import FAULTS, Fault, Scenario


def test_scenarios_can_be_keys():
    one, two = Scenario("a", "healthy"), Scenario("a", "healthy")
    assert {one: 1}[two] == 1
    assert one != replace(one, seed=2)
    assert replace(one, name="b") != one


def test_scenarios_do_not_change():
    with pytest.raises(AttributeError):
        Scenario("a", "healthy").seed = 3  # type: ignore[misc]


def test_the_kinds_of_faults_are_unique():
    assert len(set(FAULTS)) == len(FAULTS)
    assert Fault(FAULTS[0], 0.0, 1.0).target == -1
