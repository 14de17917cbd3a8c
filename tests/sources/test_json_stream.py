import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.sources import json_stream
from skewscope.sources.json_stream import JsonStream

value = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def stream(text: str) -> JsonStream:
    return JsonStream(io.BytesIO(text.encode()))


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch):
    monkeypatch.setattr(json_stream, "PIECE_BYTES", 7)


@settings(deadline=None)
@given(st.dictionaries(st.text(max_size=6), value, max_size=5), st.sampled_from([None, 2]))
def test_members_are_those_of_the_standard_library(document, indent):
    read = stream(json.dumps(document, indent=indent))
    assert dict(read.members()) == document
    assert (read.bad, read.cut) == (0, False)


@settings(deadline=None)
@given(st.lists(value, max_size=6))
def test_elements_one_by_one(elements):
    text = json.dumps({"a": 1, "events": elements, "b": 2})
    got = list(stream(text).members({"events"}))
    assert got == [("a", 1), *(("events", e) for e in elements), ("b", 2)]


@settings(deadline=None)
@given(st.lists(value, max_size=6))
def test_documents_one_after_the_other(documents):
    assert list(stream("\n".join(map(json.dumps, documents))).documents()) == documents


def test_a_damaged_element_costs_only_itself():
    read = stream('{"events": [{"a": 1},\n{"a": 0x12},\n{"a": 3}], "end": 9}')
    assert list(read.members({"events"})) == [("events", {"a": 1}), ("events", {"a": 3}), ("end", 9)]
    assert read.notes() == ["1 values are damaged and were left out"]


def test_a_cut_document_gives_what_was_whole():
    read = stream('{"events": [{"a": 1}, {"a": 2')
    assert list(read.members({"events"})) == [("events", {"a": 1})]
    assert read.cut


def test_deep_nesting_is_damage():
    read = stream('{"a": ' + "[" * 100_000)
    assert list(read.members()) == []
    assert read.bad


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_taken(text):
    for begin in ("", "{", '{"a": [', "["):
        list(stream(begin + text).members({"a"}))
        list(stream(begin + text).documents())
