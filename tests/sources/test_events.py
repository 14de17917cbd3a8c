import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.core.directory import Directory
from skewscope.sources.events import FIELD_CHARACTERS, KINDS, Events, entity_of, whole
from skewscope.sources.format import Origin


def events():
    directory = Directory()
    return directory, Events(Origin(directory, 3))


def test_an_event_keeps_what_it_says_under_ids():
    directory, made = events()
    made.add(
        5, 7, "n1/gpu0", "gpu.xid", 79, end_ns=6, peer="n1/pci 0000:91:00.0", text="off the bus", pid=None
    )
    table = made.take()["events"]
    row = {name: values[0].item() for name, values in table.columns.items()}
    assert (row["ts_ns"], row["line"], row["code"], row["end_ns"], row["source"]) == (5, 7, 79, 6, 3)
    assert directory.entities[row["entity"]] == "n1/gpu0"
    assert directory.entities[row["peer"]] == "n1/pci 0000:91:00.0"
    assert directory.names[row["kind"]] == "gpu.xid"
    assert json.loads(directory.texts[row["fields"]]) == {"text": "off the bus"}
    assert len(made) == 0


def test_long_texts_are_cut():
    directory, made = events()
    made.add(0, 1, "n1", "nccl.warning", text="x" * 10_000)
    made.take()
    assert len(json.loads(directory.texts[1])["text"]) == FIELD_CHARACTERS


def test_text_without_end_is_left_out_and_told(monkeypatch):
    monkeypatch.setattr("skewscope.sources.events.BUDGET_CHARACTERS", 100)
    directory = Directory()
    origin = Origin(directory, 0)
    made = Events(origin)
    for number in range(20):
        made.add(0, 1, "n1", "nccl.warning", text=f"warning {number}")
    fields = made.take()["events"]["fields"]
    assert (fields[:3] > 0).all()
    assert (fields[-10:] == 0).all()
    assert origin.notes == ["too much text: later events are without their fields"]


@settings(deadline=None)
@given(st.one_of(st.integers(), st.floats(), st.text(), st.none(), st.booleans()))
def test_any_value_becomes_an_int64(value):
    assert -(2**63) <= whole(value, -1) < 2**63


def test_what_is_no_number_is_the_other_value():
    assert [whole(v, 7) for v in ("x", None, math.nan, math.inf, 2**64, [])] == [7] * 6
    assert whole("12") == 12


@pytest.mark.parametrize(
    ("host", "part", "expected"),
    [("n1", "gpu0", "n1/gpu0"), ("", "gpu0", "gpu0"), ("n1", "", "n1"), ("", "", "")],
)
def test_an_entity_is_a_part_of_a_host(host, part, expected):
    assert entity_of(host, part) == expected


def test_names_of_events_are_lower_case_words():
    assert all(name.replace(".", "").replace("_", "").islower() for name in KINDS)
    assert all(KINDS.values())
