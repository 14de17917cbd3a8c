import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.sources.formats.engine_log import FORMAT
from tests.sources.formats.reading import is_told, read

VLLM = (
    "(APIServer pid=7) INFO 11-14 22:13:20 [loggers.py:123] Engine 001: Avg prompt throughput: 3392.0"
    " tokens/s, Avg generation throughput: 2.5 tokens/s, Running: 5 reqs, Waiting: 2 reqs, GPU KV cache"
    " usage: 13.5%, Prefix cache hit rate: 0.0%\n"
)
SGLANG = (
    "[2023-11-14 22:13:20 TP0] Decode batch. #running-req: 7, #token: 900, token usage: 0.25, "
    "gen throughput (token/s): 90.5, #queue-req: 3\n"
)


def values(text):
    return {(r["name"], r["labels"]): r["value"] for r in read(FORMAT, text).rows}


def test_vllm():
    assert is_told(FORMAT, "INFO start\n" + VLLM)
    assert values(VLLM) == {
        ("engine.prompt_tokens_per_s", 'engine="001"'): 3392.0,
        ("engine.generation_tokens_per_s", 'engine="001"'): 2.5,
        ("engine.requests_running", 'engine="001"'): 5.0,
        ("engine.requests_waiting", 'engine="001"'): 2.0,
        ("engine.kv_usage_ratio", 'engine="001"'): pytest.approx(0.135),
    }
    assert {r["ts_ns"] for r in read(FORMAT, VLLM).rows} == {1_700_000_000 * 10**9}


def test_sglang():
    assert is_told(FORMAT, SGLANG)
    found = {name: value for (name, _), value in values(SGLANG).items()}
    assert found["engine.requests_running"] == 7.0
    assert found["engine.requests_waiting"] == 3.0
    assert found["engine.kv_usage_ratio"] == 0.25


@settings(deadline=None)
@given(st.text(max_size=80))
def test_any_text_is_taken(text):
    read(FORMAT, text + VLLM + "Avg prompt throughput: " + text + "\n#running-req: " + text)
