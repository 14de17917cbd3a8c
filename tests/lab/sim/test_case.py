"""Whole cases: the effect is measured, the signals move, the truth is written and read."""

import pytest

from skewscope.lab.bed.truth import read, write
from skewscope.lab.sim.case import simulate
from skewscope.lab.sim.scenario import draw

SOME = ["c13", "c15", "c23", "c25", "c35", "c40", "c42.flap", "c43.frozen", "c44", "c50"]


@pytest.mark.parametrize("name", SOME)
def test_faults_show(name: str) -> None:
    case = simulate(draw(name, 7, duration_s=60.0))
    assert case.visible
    assert all(m.as_said for m in case.moved), [(m.signal.name, m.fault, m.paired) for m in case.moved]


def test_without_a_change_nothing_moves() -> None:
    case = simulate(draw("ok_first_day.serving", 3, duration_s=30.0))
    assert not case.visible
    assert set(case.effect.values()) == {1.0}
    assert case.truth().faults == ()


def test_the_strength_decides_the_effect() -> None:
    weak, strong = (simulate(draw("c12", 7, duration_s=40.0, strength=s)) for s in (0.002, 0.03))
    assert strong.effect["step_p50_ratio"] > 1.3 > weak.effect["step_p50_ratio"]


def test_a_tiny_fault_is_not_a_case() -> None:
    assert not simulate(draw("c10", 7, duration_s=40.0, strength=1e-7)).visible


def test_the_truth_is_of_the_schema() -> None:
    case = simulate(draw("c20.pcie", 2, duration_s=40.0))
    truth = read(write(case.truth()))
    assert truth.source == "sim"
    assert truth.faults[0].cause_right == ("pcie",)
    assert truth.faults[0].culprit_id == case.drawn.culprit_id
    assert 0 < truth.faults[0].onset_s < truth.faults[0].end_s < 40
