import json

import pytest

from skewscope.core.report import Cause, Culprit, Incident, Report
from tools import testbed

FACT = testbed.Truth(("c20", "c17"), ("c06",), ("host_cpu",), "10.0.0.3", 100.0, 104.0)


def _incident(condition="c20", culprit="10.0.0.3", cause="host_cpu", onset_s=100.1, also=()):
    return Incident(
        "x", condition, "", 1.0, int(onset_s * 1e9), int(onset_s * 1e9), None,
        [Culprit("rank", culprit, "", 1.0)], [Cause(cause, 1.0)], list(also),
    )  # fmt: skip


def _report(*incidents):
    return Report(inputs=[], span_ns=(0, 1), incidents=list(incidents))


@pytest.mark.parametrize(
    ("incidents", "broken"),
    [
        ([_incident()], 0),
        ([_incident("c38", also=["c17"])], 0),
        ([_incident(culprit="10.0.0.3->fabric")], 0),
        ([_incident(culprit="10.0.0.33")], 1),
        ([_incident("c38")], 1),
        ([_incident(cause="gpu")], 1),
        ([_incident(onset_s=101.2)], 1),
        ([_incident(onset_s=98.0)], 2),
        ([_incident(also=["c38", "c30", "c26"])], 1),
        ([_incident(), _incident("c06")], 0),
        ([_incident(), _incident("c25")], 1),
        ([], 1),
    ],
)
def test_a_report_is_judged(incidents, broken):
    assert len(testbed.faults_of(_report(*incidents), FACT)) == broken


def test_any_incident_on_a_healthy_recording_is_a_false_alarm():
    healthy = testbed.Truth((), (), (), "", 100.0, 102.0)
    assert testbed.faults_of(_report(), healthy) == []
    assert len(testbed.faults_of(_report(_incident()), healthy)) == 1


def test_truth_is_read_from_both_files(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "expected.toml").write_text('[run]\nconditions = ["c20"]\nculprit = "10.0.0.3"\n')
    said = {"first_packet_epoch": 50.0, "inject_start_s": 1.5, "inject_end_s": 3.5}
    (tmp_path / "run" / "truth.json").write_text(json.dumps(said))
    fact = testbed.truth(tmp_path, "run")
    assert (fact.onset_s, fact.end_s) == (51.5, 53.5)
    assert list(testbed.expected(tmp_path)) == ["run"]
