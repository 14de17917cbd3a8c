"""What a detector is given."""

import numpy as np
import pytest

from skewscope.core.condition import Params, Threshold, Window


def test_thresholds_are_read_by_name():
    params = Params({"limit": Threshold(0.5, "1", "why")})
    assert params.limit == 0.5
    with pytest.raises(AttributeError, match=r"no threshold 'limits' in entry\.toml"):
        _ = params.limits


def window(**more):
    return Window(100, 200, ["a", "b"], {"x": np.array([1.0, 2.0])}, np.array([0, 1]), {}, **more)


def test_columns_by_name_and_length():
    made = window()
    assert made["x"].tolist() == [1.0, 2.0]
    assert len(made) == 2
    with pytest.raises(KeyError):
        _ = made["y"]


def test_onsets_fall_back_to_the_start_of_the_window():
    made = window(onset={"x": np.array([0, 150])})
    assert made.onset_of("x").tolist() == [100, 150]
    assert made.onset_of("y").tolist() == [100, 100]
