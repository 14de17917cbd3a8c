"""References that a fault does not teach to itself."""

import numpy as np
import pytest

from skewscope.features import reference as module
from skewscope.features.reference import GATE, HISTORY, LEARN, RELEARN, Reference


def taught(*samples, floor=0.1):
    reference = Reference()
    for value in samples:
        reference.learn("k", np.array([value], dtype=np.float64), floor)
    return reference


def test_nothing_is_known_before_three_samples():
    assert np.isnan(Reference().get("k")).all()
    for count in range(LEARN):
        assert np.isnan(taught(*[1.0] * count).get("k")).all()
    assert taught(*[1.0] * LEARN).get("k") == (1.0, 0.0)


def test_keys_are_apart():
    reference = taught(1.0, 1.0, 1.0)
    assert np.isnan(reference.get("other")[0])
    assert (reference.size("k"), reference.size("other")) == (3, 0)


def test_median_and_scale():
    noise = np.random.default_rng(5).normal(10.0, 2.0, 60)
    reference = Reference()
    reference.learn("k", noise, 0.1)
    median, scale = reference.get("k")
    assert median == pytest.approx(10.0, abs=0.8)
    assert scale == pytest.approx(2.0, rel=0.35)


def test_in_one_piece_or_sample_by_sample_it_is_alike():
    noise = np.random.default_rng(6).normal(10.0, 1.0, 40)
    one = Reference()
    one.learn("k", noise, 0.1)
    assert one.get("k") == taught(*noise).get("k")


def test_samples_beyond_the_gate_are_not_learned():
    reference = taught(*[1.0] * 10, *[1.0 + 1.1 * GATE * 0.1] * 100)
    assert reference.get("k") == (1.0, 0.0)
    assert reference.size("k") == 10
    assert taught(*[1.0] * 10, 1.0 + 0.9 * GATE * 0.1).size("k") == 11


def test_a_contaminated_minority_does_not_move_it():
    samples = [1.0, 1.0, 1.0] + [1.0, 1.0, 1.0, 9.0] * 12
    assert taught(*samples).get("k")[0] == 1.0


def test_a_slow_drift_is_followed():
    assert taught(*np.linspace(1.0, 2.0, 400)).get("k")[0] == pytest.approx(2.0, abs=0.12)


def test_a_lasting_level_becomes_the_usual_one():
    samples = [1.0] * 10 + [5.0] * (RELEARN + 1 + LEARN)
    assert taught(*samples).get("k")[0] == 5.0
    assert taught(*samples[: -1 - LEARN]).get("k")[0] == 1.0


def test_single_rejections_do_not_add_up_to_a_new_level():
    assert taught(*[1.0] * 10, *[5.0, 1.0] * 600).get("k")[0] == 1.0


def test_unknown_samples_are_left_out():
    reference = taught(1.0, np.nan, 1.0, np.inf, 1.0)
    assert reference.get("k") == (1.0, 0.0)
    assert reference.size("k") == 3


def test_what_is_kept_is_bounded(monkeypatch):
    assert taught(*np.linspace(1.0, 1.1, 500)).size("k") == HISTORY
    monkeypatch.setattr(module, "MAX_KEYS", 2)
    reference = Reference()
    for key in range(5):
        reference.learn(key, np.ones(5), 0.1)
    assert [reference.size(k) for k in range(5)] == [5, 5, 0, 0, 0]
