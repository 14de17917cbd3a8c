"""The judge: each scoring rule broken in turn."""

from dataclasses import replace

import pytest

from skewscope.core.report import Cause, Culprit, Incident, Report
from skewscope.lab.bed.truth import Fault, Truth
from skewscope.lab.judge import judge

FAULT = Fault("c20", "rank", "10.0.0.2", ("host_cpu",), 10.0, 14.0, also_right=("c17",), secondary=("c06",))
TRUTH = Truth("x", "bed", 1, "w", 0, 0.1, faults=(FAULT,), round_s=0.01)


def incident(condition="c20", who="10.0.0.2", cause="host_cpu", onset_s=10.2, also=()):
    at = round(onset_s * 1e9)
    return Incident(
        id=condition,
        condition=condition,
        title="",
        score=1.0,
        onset_ns=at,
        detected_ns=at + 500_000_000,
        end_ns=None,
        culprits=[Culprit("rank", who, "", 0.9)],
        causes=[Cause(cause, 0.9)],
        also=list(also),
    )


def said(*incidents):
    return Report(inputs=[], span_ns=(0, 1), incidents=list(incidents))


def test_a_right_answer_is_right_and_its_delay_counts_from_the_onset():
    found = judge(said(incident()), TRUTH)
    assert found.right
    assert found.delay_s == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"condition": "c23"}, "condition"),
        ({"who": "10.0.0.3"}, "culprit"),
        ({"cause": "link"}, "cause"),
        ({"onset_s": 11.5}, "onset"),
        ({"also": ("c01", "c02", "c03")}, "also"),
    ],
)
def test_each_rule_can_be_broken(wrong, word):
    found = judge(said(incident(**wrong)), TRUTH)
    assert not found.right
    assert any(word in b for b in found.broken)


@pytest.mark.parametrize("right", [{"condition": "c17"}, {"condition": "c38", "also": ("c20",)}])
def test_other_names_that_count_as_right(right):
    assert judge(said(incident(**right)), TRUTH).right


@pytest.mark.parametrize("who", ["10.0.0.2->10.0.0.9", "10.0.0.9->10.0.0.2", "10.0.0.2:8000"])
def test_links_and_flows_of_the_culprit_name_it(who):
    assert judge(said(incident(who=who)), TRUTH).right


def test_declared_company_is_no_alarm_and_undeclared_is():
    assert judge(said(incident(), incident("c06")), TRUTH).right
    assert judge(said(incident(), incident("c31")), TRUTH).false_alarms == ("c31 10.0.0.2",)


def test_anything_before_the_fault_is_a_false_alarm():
    assert judge(said(incident(), incident("c06", onset_s=3.0)), TRUTH).false_alarms


def test_silence_is_a_miss_in_a_fault_and_right_in_health():
    assert judge(said(), TRUTH).broken
    healthy = replace(TRUTH, faults=(), allowed=("c08",))
    assert judge(said(), healthy).right
    assert judge(said(incident("c08")), healthy).right
    assert not judge(said(incident("c20")), healthy).right
