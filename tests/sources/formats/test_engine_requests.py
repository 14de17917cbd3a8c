import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.sources.formats.engine_requests import FORMAT
from tests.sources.formats.reading import SECOND, is_told, read, read_sample, samples

ENGINE = [
    {
        "request_id": "a",
        "input_toks": 10,
        "output_toks": 3,
        "arrival_time": 1e9,
        "queued_ts": 50.5,
        "scheduled_ts": 51.0,
        "first_token_ts": 52.0,
        "last_token_ts": 54.0,
    },
    {
        "request_id": "b",
        "input_toks": 20,
        "output_toks": 5,
        "arrival_time": 1e9 + 1,
        "queued_ts": 51.25,
        "scheduled_ts": 51.25,
        "first_token_ts": 51.75,
        "last_token_ts": None,
    },
]
CLIENT = {
    "due_ns": 7 * SECOND,
    "sent_ns": 7 * SECOND,
    "first_ns": 8 * SECOND,
    "end_ns": 9 * SECOND,
    "prompt": 16,
    "answer": 40,
    "bytes": 9,
    "ended": "complete",
    "gaps_us": [1, 2, 3],
}


def text(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


def test_the_clocks_of_an_engine_are_tied_by_the_fastest_request():
    data = text(*ENGINE)
    assert is_told(FORMAT, data)
    a, b = read(FORMAT, data).rows
    # b was queued at the moment it arrived, so 51.25 s is 1e9 + 1; a was queued a quarter of a second late.
    assert a["ts_ns"] == 10**9 * SECOND
    assert (a["first_ns"] - a["ts_ns"]) / 1e9 == pytest.approx(1.75)
    assert (a["end_ns"] - a["ts_ns"]) / 1e9 == pytest.approx(3.75)
    assert (a["queued_s"], a["key"], a["prompt_tokens"], a["output_tokens"], a["status"]) == (
        0.5,
        "a",
        10,
        3,
        200,
    )
    assert (b["first_ns"] - b["ts_ns"]) / 1e9 == pytest.approx(0.5)
    assert (b["end_ns"], b["status"]) == (0, 0)


@pytest.mark.parametrize(
    ("ended", "status"), [("complete", 200), ("hung_up", -2), ("failed", -1), ("refused", -1), ("closed", -1)]
)
def test_requests_of_a_client_count_from_when_they_were_due(ended, status):
    data = text({**CLIENT, "ended": ended})
    assert is_told(FORMAT, data)
    (row,) = read(FORMAT, data).rows
    assert (row["ts_ns"], row["first_ns"], row["end_ns"]) == (7 * SECOND, 8 * SECOND, 9 * SECOND)
    assert (row["output_tokens"], row["status"]) == (4, status)
    assert math.isnan(row["queued_s"])


def test_other_lines_are_counted():
    assert read(FORMAT, text(*ENGINE) + "oops\n{}\n").notes[-1] == "2 lines are no requests and were left out"


@settings(deadline=None)
@given(
    st.sampled_from([*ENGINE[0], *CLIENT]),
    st.none() | st.integers() | st.floats() | st.text(max_size=4) | st.lists(st.integers()),
)
def test_members_may_be_anything(member, value):
    read(FORMAT, text({**ENGINE[0], member: value}, {**CLIENT, member: value}))


@samples
def test_a_run_whose_cache_was_full_waited_and_a_healthy_one_did_not():
    def ttft(name):
        rows = read_sample(FORMAT, f"engine/{name}.requests.jsonl").rows
        assert len(rows) == 300
        assert all(r["ts_ns"] < r["first_ns"] <= r["end_ns"] for r in rows)
        return np.median([(r["first_ns"] - r["ts_ns"]) / 1e9 for r in rows])

    assert ttft("vllm_0.19.0_rtx4090_llama31-8b_tp1") == pytest.approx(60, abs=2)
    assert ttft("vllm_0.19.0_rtxpro6000_qwen3-30b-a3b_dp2ep") == pytest.approx(0.17, abs=0.02)
