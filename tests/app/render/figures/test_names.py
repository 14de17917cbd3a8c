"""Who is who."""

from skewscope.app.render.figures.names import address_of, names_of
from skewscope.core.report import Culprit


def test_address_of():
    assert address_of("10.0.0.3") == "10.0.0.3"
    assert address_of("10.0.0.3:8000") == "10.0.0.3"
    assert address_of("10.0.0.3/gpu3") == "10.0.0.3"
    assert address_of("[fd00::1]:8000") == "fd00::1"
    assert address_of("fd00::1") == "fd00::1"
    assert address_of("metric:job") == "metric:job"


def test_names(straggler):
    names = names_of(straggler)
    assert names.of("10.77.0.12") == "rank 2"
    assert names.of("10.77.0.10:8000") == "rank 0:8000"
    assert names.of("10.77.0.12->10.77.0.13") == "rank 2 → rank 3"
    assert names.of("elsewhere") == "elsewhere"
    assert names.is_culprit("10.77.0.12")
    assert not names.is_culprit("10.77.0.11")
    assert "10.77.0.11" in names.victims


def test_an_improbable_suspect_is_not_accused(straggler):
    assert not names_of(straggler).is_culprit("10.77.0.12->10.77.0.13")
    straggler.incidents[0].culprits = [Culprit("link", "10.77.0.12->10.77.0.13", "", 0.9)]
    names = names_of(straggler)
    assert names.is_culprit("10.77.0.13->10.77.0.12")
    assert not names.is_culprit("10.77.0.12")
