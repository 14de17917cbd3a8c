import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.sources.formats.engine_run import FORMAT
from tests.sources.formats.reading import AT_NS, SECOND, is_told, read, read_sample, samples

SERIES = (
    "t,prompt_throughput,gen_throughput,running,waiting,kv_cache_pct\n"
    "1.0,100.0,2.0,5,2,13.22\n2.0,x,3.0,6,0,50\n"
)


def test_samples_end_at_the_time_of_the_file():
    assert is_told(FORMAT, SERIES)
    found = read(FORMAT, SERIES)
    at = {(r["name"], r["ts_ns"] - AT_NS): r["value"] for r in found.rows}
    assert at["engine.requests_running", -SECOND] == 5
    assert at["engine.kv_usage_ratio", 0] == pytest.approx(0.5)
    assert len(found.rows) == 10


def test_what_was_run():
    text = (
        '{"vllm_version": "0.19.0", "engine_kwargs": {"tensor_parallel_size": 2}, "started_at":'
        ' "2026-04-25T19:21:30Z"}'
    )
    assert is_told(FORMAT, text)
    (row,) = read(FORMAT, text).rows
    assert row["ts_ns"] == 1_777_144_890 * SECOND
    assert row["fields"]["settings"] == {"tensor_parallel_size": 2}


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_taken(text):
    for begin in (SERIES, SERIES.splitlines()[0] + "\n", '{"vllm_version": '):
        read(FORMAT, begin + text)


@samples
def test_a_recorded_run():
    name = "engine/vllm_0.19.0_rtx4090_llama31-8b_tp1"
    rows = read_sample(FORMAT, f"{name}.timeseries.csv").rows
    most = {n: max(r["value"] for r in rows if r["name"] == n) for n in {r["name"] for r in rows}}
    assert most["engine.kv_usage_ratio"] == 1.0
    assert most["engine.requests_waiting"] == 234
    (run,) = read_sample(FORMAT, f"{name}.meta.json").rows
    assert (run["code"], run["fields"]["kv_tokens"]) == (300, 41408)
    assert (run["end_ns"] - run["ts_ns"]) / SECOND == pytest.approx(184.07, abs=0.01)
