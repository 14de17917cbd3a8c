"""Recorded answers as text and as columns."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewscope.fingerprint.collection import Answer, CollectionError, header_line, parse, token_code

HEADER = header_line({"platform": {"name": "x"}})


def test_answers_return_bit_by_bit_and_in_order() -> None:
    logits = np.array([1.5, -2.25e-7], np.float32)
    values = [float(np.float32(x)) for x in (-0.1, -0.1, -3.3)]
    rows = [Answer("b", 0, 0, [9, 4, 7], values, logits), Answer("a", 1, 0, ["y", "x"], [-1.0, -0.5])]
    got = parse([HEADER, *(r.line() for r in rows)], "n")
    assert got.keys == [("a", 1), ("b", 0)]
    assert got.tokens[1].tolist() == [4, 9, 7]  # equal values in the order of ids
    np.testing.assert_array_equal(got.logprobs[1], np.array(values, np.float32))
    assert np.isnan(got.logprobs[0, 2])
    np.testing.assert_array_equal(got.logits[1], logits)
    assert got.chosen.tolist() == [token_code("x"), 4]
    assert token_code("x") < -1


def test_a_repeated_answer_replaces_the_earlier_one() -> None:
    lines = [Answer("a", 0, 0, [1], [v]).line() for v in (-1.0, -2.0)]
    assert parse([HEADER, *lines]).logprobs.tolist() == [[-2.0]]


@given(st.lists(st.text(max_size=30) | st.from_regex(r'\{"probe": .{0,30}', fullmatch=True), max_size=5))
def test_damaged_lines_are_counted_and_cost_nothing_else(lines: list[str]) -> None:
    good = Answer("a", 0, 0, [1], [-1.0]).line()
    bad = [x.replace("\n", " ") for x in lines]
    got = parse([HEADER, *bad, good])
    assert len(got) == 1
    assert got.damaged == sum(bool(x.strip()) for x in bad)


@pytest.mark.parametrize(
    "change",
    [
        {"logprobs": [1e309]},
        {"tokens": [None]},
        {"tokens": [1, 2]},
        {"logits": "%"},
        {"position": "x"},
        {"tokens": [10**30]},
        {"repeat": 10**30},
        {"logprobs": [1000000000.0]},
        {"tokens": [True]},
        {"tokens": [-1]},
    ],
)
def test_a_row_with_a_wrong_field_is_damaged(change: dict[str, object]) -> None:
    row = json.loads(Answer("a", 0, 0, [1], [-1.0]).line()) | change
    assert parse([HEADER, json.dumps(row)]).damaged == 1


@pytest.mark.parametrize("first", ["", "{}", "[]", "null", '{"schema": "other"}', "\x00", "[" * 3000])
def test_other_files_are_refused(first: str) -> None:
    with pytest.raises(CollectionError):
        parse([first])
