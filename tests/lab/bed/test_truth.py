"""truth.toml: what is written is read back; what is no truth is refused."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewscope.lab.bed.truth import Fault, Truth, TruthError, read, write

FAULT = Fault(
    condition="c20",
    culprit_kind="rank",
    culprit_id="10.4.0.12",
    cause_right=("host_cpu", "runtime"),
    onset_s=31.4,
    end_s=61.4,
    also_right=("c17",),
    secondary=("c06",),
    strength=("cpu_quota_ratio", 0.25),
    effect={"step_time_ratio": 1.8, "goodput_ratio": 0.7},
    visible_from=("tap:n2", "tap:n1"),
)
TRUTH = Truth(
    name="tp_straggler.s17",
    source="bed",
    seed=17,
    workload="tp4-mid",
    first_sample_ns=1796047362584615200,
    machine_busy_ratio=0.09,
    faults=(FAULT,),
    round_s=0.02,
    bed={
        "how": "a quota",
        "nodes": {"n0": {"role": "rank", "addresses": ["10.4.0.12"]}},
        "tries": 1,
        "x": 0.5,
    },
)


def test_written_and_read_back():
    assert read(write(TRUTH)) == TRUTH


def test_a_healthy_case_has_no_fault_and_may_allow_conditions():
    healthy = Truth("h", "bed", 1, "w", 5, 0.1, allowed=("c01",), round_s=0.1)
    found = read(write(healthy))
    assert found == healthy
    assert not found.faults


@given(st.text(max_size=40), st.floats(allow_nan=False, allow_infinity=False, width=32))
def test_any_text_and_number_survives(text, number):
    found = read(write(Truth(text, "bed", 1, text, 5, 0.1, round_s=0.1, bed={text: text, "n": number})))
    assert found.name == text
    assert found.bed[text] == text or text == "n"
    assert math.isclose(found.bed["n"], number, abs_tol=1e-6, rel_tol=1e-9)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "schema"),
        ("[[", "TOML"),
        ('schema = "other/1"', "schema"),
        ('schema = "skewscope.truth/1"', "missing"),
        (write(TRUTH).replace("culprit =", "guilty ="), "culprit"),
        (write(TRUTH).replace("onset_s =", "on ="), "onset_s"),
    ],
)
def test_what_is_no_truth_is_refused(text, word):
    with pytest.raises(TruthError, match=word):
        read(text)
