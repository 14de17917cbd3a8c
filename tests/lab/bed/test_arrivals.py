"""Arrivals: rates and spreads of synthetic ones, rows and scaling of traces."""

from itertools import islice, pairwise
from random import Random

import pytest

from skewscope.lab.bed.arrivals import Lengths, TraceError, synthetic, trace

AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:17:03.9799600,4800,10
2023-11-16 18:17:05.9799600,2400,40
2023-11-16 18:17:07.9799600,24,20
"""
MOONCAKE = """{"timestamp": 0, "input_length": 100, "output_length": 5, "hash_ids": [1]}
{"timestamp": 500, "input_length": 50, "output_length": 10, "hash_ids": []}
"""


def made(rate, cv, burst=1, count=4000):
    rng = Random(1)
    lengths = Lengths("16", rng), Lengths("8-64", rng)
    return list(islice(synthetic(rate, cv, burst, *lengths, rng), count))


@pytest.mark.parametrize("cv", [0.3, 1.0, 2.0])
def test_synthetic_arrivals_have_the_rate_and_the_spread_asked_for(cv):
    times = [a.due_s for a in made(5.0, cv)]
    gaps = [b - a for a, b in pairwise(times)]
    mean = sum(gaps) / len(gaps)
    spread = (sum((g - mean) ** 2 for g in gaps) / len(gaps)) ** 0.5 / mean
    assert mean == pytest.approx(0.2, rel=0.1)
    assert spread == pytest.approx(cv, rel=0.15)


def test_bursts_come_together_at_the_same_mean_rate():
    found = made(6.0, 1.0, burst=3)
    assert all(len({a.due_s for a in found[k : k + 3]}) == 1 for k in range(0, 30, 3))
    assert len(found) / found[-1].due_s == pytest.approx(6.0, rel=0.1)


@pytest.mark.parametrize(
    ("form", "low", "high"), [("16", 16, 16), ("8-64", 8, 64), ("8~640", 8, 640), ("4|200", 4, 200)]
)
def test_lengths_stay_within_their_form(form, low, high):
    lengths = Lengths(form, Random(2))
    drawn = [lengths.draw() for _ in range(200)]
    assert low <= min(drawn) <= max(drawn) <= high


def test_lengths_in_turn_alternate():
    lengths = Lengths("8|200", Random(1))
    assert [lengths.draw() for _ in range(4)] == [8, 200, 8, 200]


@pytest.mark.parametrize("form", ["", "0", "x", "9-3", "0~5"])
def test_a_wrong_form_is_refused(form):
    with pytest.raises(ValueError, match=r"length|invalid"):
        Lengths(form, Random(1))


def test_an_azure_trace_is_scaled_to_rate_and_lengths(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(AZURE)
    found = list(trace(file, rate=4.0, most_prompt=480, most_answer=40))
    assert [a.due_s for a in found] == pytest.approx([0.0, 0.25, 0.5])
    assert [a.prompt for a in found] == [480, 240, 2]
    assert [a.answer for a in found] == [10, 40, 20]


def test_a_mooncake_trace_is_read_and_never_scaled_up(tmp_path):
    file = tmp_path / "m.jsonl"
    file.write_text(MOONCAKE)
    found = list(trace(file, rate=2.0, most_prompt=1000, most_answer=1000))
    assert [(a.due_s, a.prompt, a.answer) for a in found] == [(0.0, 100, 5), (0.5, 50, 10)]


def test_a_trace_can_be_entered_later(tmp_path):
    file = tmp_path / "m.jsonl"
    file.write_text(
        MOONCAKE + MOONCAKE.replace('"timestamp": 0', '"timestamp": 900').replace("500,", "1900,")
    )
    assert len(list(trace(file, 1.0, 100, 100, start_s=0.8))) == 2


@pytest.mark.parametrize("text", ["nonsense\n", '{"timestamp": 1}\n', "2023-11-16 18:17:03.97,1\n"])
def test_a_wrong_row_is_named(tmp_path, text):
    file = tmp_path / "x"
    file.write_text(text)
    with pytest.raises(TraceError, match=":1:"):
        list(trace(file, 1.0, 100, 100))


def test_a_trace_without_requests_is_refused(tmp_path):
    file = tmp_path / "x"
    file.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n")
    with pytest.raises(TraceError, match="fewer than two"):
        list(trace(file, 1.0, 100, 100))
