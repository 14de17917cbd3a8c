"""Scenario files: complete, drawn from a seed, and refused with a reason."""

import numpy as np
import pytest

from skewscope.lab.sim import scenario
from skewscope.lab.sim.knobs import KNOBS
from skewscope.lab.sim.vantage.job import products, series_of

SIMULATED = {f"c{n:02}" for n in range(1, 51)} - {"c32", "c41", "c46"}


def test_every_simulated_condition_has_a_scenario() -> None:
    assert {scenario.load(n)["condition"] for n in scenario.names()} == SIMULATED | {""}


@pytest.mark.parametrize("name", scenario.names())
def test_files_name_knobs_series_and_causes(name: str) -> None:
    series = {n for p in products() for n in series_of(p)}
    for variant in scenario.variants(name):
        drawn = scenario.draw(f"{name}.{variant}", 1)
        assert all(c.knob in KNOBS for c in drawn.changes)
        assert all(s.name in series or s.name.startswith("event:") for s in drawn.signals)
        if drawn.condition:
            assert drawn.culprit_id
            assert drawn.cause_right
            assert drawn.changes or drawn.added is not None
            assert name.startswith(drawn.condition)


def test_a_seed_gives_the_same_scenario_and_others_differ() -> None:
    one, two, other = (scenario.draw("c20.gpu", s) for s in (3, 3, 4))
    assert one.changes == two.changes
    assert np.array_equal(one.demand.at_s, two.demand.at_s)
    assert (one.culprit_id, one.strength) != (other.culprit_id, other.strength)


def test_causes_of_a_straggler_take_turns() -> None:
    found = [scenario.draw("c20", s).variant for s in range(12)]
    assert all(found.count(cause) == 2 for cause in ("gpu", "pcie", "host_cpu", "runtime"))


def test_every_change_is_undone() -> None:
    drawn = scenario.draw("c25", 5)
    last = [c for c in drawn.changes if c.at_s == max(x.at_s for x in drawn.changes)]
    assert all(c.value == KNOBS[c.knob][1] for c in last)


@pytest.mark.parametrize(
    ("asked", "said"), [("c99", "no scenario"), ("c20.x", "no variant"), ("c2", "no scenario")]
)
def test_unknown_names_are_refused(asked: str, said: str) -> None:
    with pytest.raises(scenario.ScenarioError, match=said):
        scenario.draw(asked, 1)
