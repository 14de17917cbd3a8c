import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.act.weights import good_rate, ratio


def test_three_times_as_slow() -> None:
    # objective 1 s: a usual endpoint keeps it up to 1/0.2 - 1 = 4 a second, this one up to 1/0.6 - 1 = 0.67
    assert ratio(0.2, 0.6, 1.0) == pytest.approx((1 / 0.6 - 1) / 4)
    mean_s = 0.2 / (1 - good_rate(0.2, 1.0) * 0.2)
    assert mean_s == pytest.approx(1.0)  # at that rate the mean is the objective


def test_who_cannot_keep_the_objective_gets_nothing_and_who_is_not_slow_keeps_all() -> None:
    assert ratio(0.2, 1.0, 1.0) == 0.0
    assert ratio(0.2, 5.0, 1.0) == 0.0
    assert ratio(0.2, 0.2, 1.0) == 1.0
    assert ratio(0.2, 0.1, 1.0) == 1.0
    assert ratio(2.0, 9.0, 1.0) == 1.0


@settings(deadline=None)
@given(st.lists(st.floats(0.05, 2.0), min_size=2, max_size=6), st.floats(0.3, 3.0), st.integers(0, 99))
def test_no_other_split_serves_more_demand_within_the_objective(
    alone: list[float], objective: float, seed: int
) -> None:
    rates = np.array([good_rate(s, objective) for s in alone])
    if rates.sum() <= 0:
        return
    shares = rates / rates.sum()
    assert np.all(shares * rates.sum() * 0.999 <= rates)  # all that any split can serve, this one serves
    others = np.random.default_rng(seed).dirichlet(np.ones(len(alone)), 200)
    with np.errstate(divide="ignore"):
        served = np.min(
            np.where(others > 0, rates / others, np.inf), axis=1
        )  # demand until the first one fails
    assert served.max() <= rates.sum() * (1 + 1e-9)
