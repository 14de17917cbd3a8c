from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.act import benefit
from skewscope.act.settings import parse
from tests.core.test_action import ACTION

VERIFY = parse("").verify


def test_a_drain_of_one_of_three_that_is_three_times_as_slow() -> None:
    # the mean was (1 + 1 + 3) / 3 of the usual one and will be 1
    assert benefit.predict(3.0, 3, 0.0) == pytest.approx(1 - 3 / 5)


def test_a_quarter_of_the_weight() -> None:
    # shares 4:4:1, so the mean will be (4 + 4 + 3) / 9
    assert benefit.share_after(3, 0.25) == pytest.approx(1 / 9)
    assert benefit.predict(3.0, 3, 0.25) == pytest.approx(1 - (11 / 9) / (5 / 3))


@settings(deadline=None)
@given(st.floats(0, 100), st.integers(1, 50), st.floats(0, 1))
def test_a_prediction_is_a_share_and_more_is_gained_by_moving_more(slow: float, n: int, ratio: float) -> None:
    got = benefit.predict(slow, n, ratio)
    assert -1e-9 <= got < 1
    assert benefit.predict(slow, n, 0.0) >= got - 1e-9 or n == 1
    if slow <= 1:
        assert got == 0


@pytest.mark.parametrize(
    ("seen", "verdict"),
    [
        (0.4, "helped"),
        (0.2, "helped"),
        (0.1, "weak"),
        (0.03, "no help"),
        (-0.03, "no help"),
        (-0.1, "harmed"),
    ],
)
def test_verdicts(seen: float, verdict: str) -> None:
    assert benefit.verdict(0.4, seen, VERIFY) == verdict


def test_a_factor_is_learned_from_three_of_a_kind() -> None:
    made = [
        replace(ACTION, id=f"a{i}", predicted_ratio=0.4, observed_ratio=seen)
        for i, seen in enumerate((0.1, 0.2, 0.3))
    ]
    assert benefit.learned(made[:2], "gpu", "drain_endpoint") == 1.0
    assert benefit.learned(made, "gpu", "drain_endpoint") == pytest.approx(0.5)
    assert benefit.learned(made, "nic", "drain_endpoint") == 1.0
    assert benefit.learned([replace(a, observed_ratio=-1.0) for a in made], "gpu", "drain_endpoint") == 0.0
