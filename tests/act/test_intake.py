import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.act.intake import IntakeError, Witness, read
from tests.act.worlds import NS, T0, report, trigger

SIGNALS = {"c20": "east_west", "c06": "north_south", "c23": "east_west"}


def test_a_report_becomes_triggers() -> None:
    got = read(json.dumps(report()), SIGNALS)
    (t,) = got.triggers
    assert (got.first_ns, got.last_ns, got.streams_seen) == (T0 - 20 * NS, T0, True)
    assert (t.condition, t.culprit, t.culprit_probability, t.cause) == ("c20", "10.0.0.2", 0.95, "host_cpu")
    assert (t.metric, t.usual, t.now, t.ended) == ("chunk_gap_s", 0.1, 0.3, False)  # no TTFT is known before
    assert t.witnesses == (Witness("10.0.0.2", "east_west", "10.0.0.2", "10.0.0.2"),)


def test_one_tap_is_one_source_however_much_it_says() -> None:
    incident = report()["incidents"][0]
    incident["findings"] *= 3
    (t,) = read(json.dumps(report(**incident)), SIGNALS).triggers
    assert t.two_sources() == ""


def _finding(condition: str, key: str, file: str) -> dict[str, Any]:
    return {"condition": condition, "key": key, "evidence": [{"packets": [], "spans": [{"file": file}]}]}


@pytest.mark.parametrize(
    ("findings", "words"),
    [
        ([("c20", "10.0.0.2", "n1.pcap"), ("c06", "10.0.0.1:8000", "lg.pcap")], "north_south at lg.pcap"),
        ([("c20", "10.0.0.2", "n1.pcap"), ("c23", "x", "lg.pcap")], ""),  # two taps, one kind of signal
        ([("c20", "10.0.0.2", "n1.pcap"), ("c06", "x", "n1.pcap")], ""),  # two signals, one tap
        (
            [("c23", "10.0.0.2:1->10.0.0.3:2", "n1.pcap"), ("c23", "10.0.0.2:1->10.0.0.3:2", "n2.pcap")],
            "both ends",
        ),
        ([("c23", "10.0.0.2->10.0.0.9", "n1.pcap"), ("c23", "10.0.0.2->10.0.0.9", "n2.pcap")], ""),
        (
            [("c99", "x", "n1.pcap"), ("c06", "x", "lg.pcap")],
            "",
        ),  # a condition of unknown signal says nothing
    ],
)
def test_two_sources_are_different_collectors_and_signals_or_both_ends_of_one_flow(
    findings: list[tuple[str, str, str]], words: str
) -> None:
    data = report(findings=[_finding(*f) for f in findings])
    data["inputs"] += [{"path": "n2.pcap", "host": "10.0.0.3"}]
    (t,) = read(json.dumps(data), SIGNALS).triggers
    assert (words in t.two_sources()) if words else (t.two_sources() == "")


def test_what_is_no_probability_permits_nothing() -> None:
    for value in (None, "1", 1.5, -1, True):
        (t,) = read(json.dumps(report(score=value)), SIGNALS).triggers
        assert t.score == 0.0
    text = json.dumps(report()).replace('"score": 0.99', '"score": NaN')
    assert read(text, SIGNALS).triggers[0].score == 0.0


def test_without_numbers_before_and_during_there_is_no_metric() -> None:
    for impact in (
        {},
        {"ttft_s": [0, 0.3]},
        {"ttft_s": [0.1, None]},
        {"ttft_s": None},
        {"ttft_s": [1e400, 1]},
    ):
        (t,) = read(json.dumps(report(impact=impact)), SIGNALS).triggers
        assert (t.metric, t.usual, t.now) == ("", 0.0, 0.0)


def test_the_likeliest_cause_and_none() -> None:
    assert trigger(causes={"gpu": 0.2, "nic": 0.7}).cause == "nic"
    assert trigger(causes={}).cause == "unknown"


@pytest.mark.parametrize("text", ["", "[]", "3", "{}", '{"schema": "other/1"}', "[" * 100_000])
def test_what_is_no_report_is_one_line(text: str) -> None:
    with pytest.raises(IntakeError) as caught:
        read(text, SIGNALS)
    assert "\n" not in str(caught.value)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda v: st.one_of(st.lists(v, max_size=3), st.dictionaries(st.text(max_size=8), v, max_size=3)),
    max_leaves=8,
)


@settings(deadline=None)
@given(
    st.sampled_from(sorted(report())),
    st.sampled_from(sorted(report()["incidents"][0])),
    json_values,
    st.booleans(),
)
def test_any_damage_is_read_or_refused_in_one_line(top: str, inner: str, value: Any, deep: bool) -> None:
    data = report(**{inner: value}) if deep else {**report(), top: value}
    said = ""
    try:
        read(json.dumps(data), SIGNALS)
    except IntakeError as error:
        said = str(error)
    assert "\n" not in said
