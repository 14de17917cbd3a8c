"""One tap instead of all: less may be found, but nothing wrong may be said."""

import pytest

from skewscope.app.pipeline import run
from tests.whole.recorded import NEEDED, ROOT, WHY, truth

pytestmark = [pytest.mark.samples, pytest.mark.skipif(NEEDED, reason=WHY)]

AT_THE_VICTIM = [("rank_crash", "n3"), ("delay", "n2"), ("loss_uplink", "n2"), ("loss_downlink", "n1")]
ELSEWHERE = [("healthy", "n0"), ("vllm_healthy", "n1"), ("rank_crash", "n0"), ("delay", "lg")]


@pytest.mark.parametrize(("name", "tap"), [*AT_THE_VICTIM, *ELSEWHERE])
def test_no_wrong_condition_is_named(name, tap):
    fact = truth(name)
    report = run([ROOT / name / f"{tap}.pcap.gz"])
    allowed = {*fact.conditions, *fact.secondary}
    assert {i.condition for i in report.incidents} <= allowed
    for incident in report.incidents:
        assert len(incident.also) <= 2


@pytest.mark.parametrize(("name", "tap"), AT_THE_VICTIM)
def test_what_is_missing_from_one_tap_is_said(name, tap):
    """Not every condition can be judged from one tap; those that cannot are listed with what they lack."""
    report = run([ROOT / name / f"{tap}.pcap.gz"])
    assert all(n.missing for n in report.no_data)
    assert report.inputs[0].packets > 0
