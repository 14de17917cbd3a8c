"""What feature families exchange."""

import numpy as np

from skewscope.core.directory import Directory
from skewscope.core.features import FeatureRows, Slice, nan_rows


def test_unknown_columns_are_nan():
    assert np.isnan(nan_rows(3)).all()
    assert nan_rows(0).shape == (0,)
    assert nan_rows(2).dtype == np.float64


def test_rows_and_slices_have_room_for_more():
    one, two = FeatureRows("host", [], {}), FeatureRows("host", [], {})
    one.onset_ns["x"] = np.zeros(0)
    assert two.onset_ns == {}
    assert not Slice(0, 1, {}, Directory()).last
