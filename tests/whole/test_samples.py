"""Every recorded fault through the whole pipeline, judged by the scoring rules."""

import pytest

from skewscope.app.pipeline import run
from tests.whole.recorded import NEEDED, ROOT, WHY, expected, faults_of, truth

pytestmark = [pytest.mark.samples, pytest.mark.skipif(NEEDED, reason=WHY)]


@pytest.mark.parametrize("name", sorted(expected()))
def test_a_recorded_fault_is_explained(name):
    report = run(sorted((ROOT / name).glob("*.pcap.gz")))
    assert faults_of(report, truth(name)) == []
    assert all(i.kind == "pcap" and i.packets for i in report.inputs)
    for incident in report.incidents:
        assert sum(c.probability for c in incident.culprits) <= 1.0 + 1e-9
        assert sum(c.probability for c in incident.causes) == pytest.approx(1.0)
        assert incident.onset_ns <= incident.detected_ns <= report.span_ns[1]
        assert incident.evidence
