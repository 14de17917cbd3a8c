"""The engine: what it refuses at the start, what it feeds to whom, what it says of missing data."""

import numpy as np
import pytest

from skewscope.core.directory import Directory
from skewscope.core.entry import Timing
from skewscope.core.features import FeatureColumn, FeatureRows, FeatureSpec, Slice
from skewscope.engine.run import Engine, Plan
from tests.engine.tables import Above, entry, rows

TICK = 100_000_000


def family(scope, needs=(), values=(), columns=("x",)):
    """Return a feature family that plays values back, one list per slice."""

    class Family:
        SPEC = FeatureSpec(scope, "doc", {n: FeatureColumn("s", "doc") for n in columns})
        NEEDS = needs

        def __init__(self):
            self.given = []
            self.values = list(values)

        def update(self, slice_, others):
            self.given.append(set(others))
            return rows(scope, x=self.values.pop(0)) if self.values else rows(scope)

    return Family()


def slice_at(number, last=False):
    return Slice(number * TICK, (number + 1) * TICK, {}, Directory(), last)


def test_an_unknown_scope_stops_the_start():
    with pytest.raises(ValueError, match=r"c99: no feature family for scope 'rack'"):
        Engine(Plan([family("host")], [(entry("rack"), Above())]))


def test_an_unknown_feature_stops_the_start():
    with pytest.raises(ValueError, match=r"c99: scope 'host' has no feature speed, width"):
        Engine(Plan([family("host")], [(entry(needs=("width", "x", "speed")), Above())]))


def test_families_see_those_before_them():
    one, two = family("host"), family("pair", needs=("host",))
    engine = Engine(Plan([one, two], []))
    engine.feed(slice_at(0))
    assert (one.given, two.given) == ([set()], [{"host"}])


def test_observers_see_every_slice_with_all_rows():
    seen = []
    engine = Engine(
        Plan([family("host", values=[[1.0]])], []), [lambda s, r: seen.append((s.start_ns, set(r)))]
    )
    engine.feed(slice_at(0))
    engine.feed(slice_at(1))
    assert seen == [(0, {"host"}), (TICK, {"host"})]


def test_findings_are_kept_in_the_order_in_which_they_fired():
    timing = Timing(1, 1, 0.2)
    engine = Engine(
        Plan([family("host", values=[[0.0, 0.0], [0.0, 5.0], [5.0, 0.0]])], [(entry(timing=timing), Above())])
    )
    fired = [[f.key for f in engine.feed(slice_at(i))] for i in range(6)]
    assert fired == [[], ["b"], ["a"], [], [], []]
    assert [(f.key, f.end_ns) for f in engine.findings] == [("b", 2 * TICK), ("a", 3 * TICK)]


def test_no_data_names_what_was_missing():
    lacking = entry(needs=("x", "y"))
    engine = Engine(Plan([family("host", values=[[1.0]], columns=("x", "y"))], [(lacking, Above())]))

    def update(slice_, others):
        return FeatureRows("host", ["a"], {"x": np.ones(1), "y": np.full(1, np.nan)})

    engine._features[0].update = update
    engine.feed(slice_at(0))
    (said,) = engine.no_data()
    assert (said.condition, said.missing) == ("c99", ["host.y"])


def test_features_that_were_never_known_together_are_all_named():
    engine = Engine(Plan([family("host", columns=("x", "y"))], [(entry(needs=("x", "y")), Above())]))
    engine._features[0].update = lambda *_: FeatureRows(
        "host", ["a", "b"], {"x": np.array([1, np.nan]), "y": np.array([np.nan, 1])}
    )
    engine.feed(slice_at(0))
    assert engine.no_data()[0].missing == ["host.x", "host.y"]


def test_a_judged_condition_is_not_without_data():
    engine = Engine(Plan([family("host", values=[[0.0]])], [(entry(), Above())]))
    engine.feed(slice_at(0))
    assert engine.no_data() == []
    assert Engine(Plan([family("host")], [(entry(), Above())])).no_data()[0].missing == ["host.x"]


def test_arithmetic_with_unknown_values_is_silent():
    feature = family("host")

    def update(slice_, others):
        zero = np.zeros(1)
        return FeatureRows("host", ["a"], {"x": zero / zero})

    feature.update = update
    engine = Engine(Plan([feature], [(entry(), Above())]))
    assert engine.feed(slice_at(0)) == []
