"""The report as data: defaults are apart, and everything is plain enough to be written out."""

import dataclasses
import json

from skewscope.core.report import Evidence, Finding, Incident, Report


def test_lists_are_not_shared():
    one, two = (Incident("i", "c20", "t", 0.9, 1, 2, None) for _ in range(2))
    one.also.append("c06")
    one.evidence.append(Evidence("x", 1.0, "s"))
    assert (two.also, two.evidence) == ([], [])


def test_a_report_is_plain_data():
    finding = Finding("c20", "member", "10.0.0.1", 0.9, 1, 2, None)
    report = Report([], (0, 1), incidents=[Incident("i", "c20", "t", 0.9, 1, 2, None, findings=[finding])])
    text = json.dumps(dataclasses.asdict(report))
    assert json.loads(text)["incidents"][0]["findings"][0]["key"] == "10.0.0.1"
