import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.sources.formats.kineto import FORMAT
from tests.sources.formats.reading import AT_NS, is_told, read, read_sample, samples

KERNEL = {
    "ph": "X",
    "cat": "kernel",
    "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgs)",
    "ts": 2000.5,
    "dur": 30.25,
    "args": {
        "device": 0,
        "stream": 7,
        "Collective name": "allreduce",
        "In msg nelems": 100,
        "dtype": "BFloat16",
        "Process Group Name": "3",
        "Process Group Description": "tp",
        "Group size": 2,
        "Process Group Ranks": "[0, 1]",
    },
}
TRACE = {
    "schemaVersion": 1,
    "distributedInfo": {"rank": 5, "nccl_version": "2.27.3"},
    "traceEvents": [{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 1}, KERNEL],
    "baseTimeNanoseconds": 1_711_964_646_000_000_000,
}


def test_kernels_with_how_long_they_took():
    text = json.dumps(TRACE)
    assert is_told(FORMAT, text, "trace.json")
    found = read(FORMAT, text)
    (row,) = found.of("nccl.kernel")
    assert (row["entity"], row["code"], row["peer"]) == ("rank:5", 200, "group:3 tp")
    assert row["ts_ns"] == 1_711_964_646_000_000_000 + 2_000_500
    assert row["end_ns"] - row["ts_ns"] == 30_250
    assert row["fields"]["operation"] == "allreduce"
    assert found.of("nccl.version")[0]["code"] == 22703
    assert "2 trace events, 1 of them" in found.notes[0]


def test_times_without_a_base_are_put_at_the_file():
    trace = {k: v for k, v in TRACE.items() if k != "baseTimeNanoseconds"}
    found = read(FORMAT, json.dumps(trace))
    assert found.of("nccl.kernel")[0]["ts_ns"] == AT_NS + 2_000_500
    assert any("unknown point" in note for note in found.notes)


def test_a_trace_that_is_cut_off_gives_what_is_there():
    text = json.dumps(TRACE)
    found = read(FORMAT, text[: text.index('"baseTime') - 3])
    assert len(found.of("nccl.kernel")) == 1
    assert "the end is missing" in found.notes


@settings(deadline=None)
@given(
    st.sampled_from(["ts", "dur", "name", "cat", "args"]),
    st.none() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
)
def test_members_of_events_may_be_anything(member, value):
    read(FORMAT, json.dumps({**TRACE, "traceEvents": [{**KERNEL, member: value}]}))


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_taken(data):
    read(FORMAT, b'{"schemaVersion": 1, "traceEvents": [' + data)


@samples
@pytest.mark.parametrize(
    ("name", "rank", "kernels", "longest_us"),
    [
        ("kineto_allreduce_ddp_rank0_ws2.json.gz", 0, 21, None),
        ("kineto_alltoall_rs_rank0_ws16.json.gz", 0, 80, None),
        ("kineto_sampled_rank0_ws128.json.gz", 0, 10, None),
        ("kineto_sampled_rank1_ws128.json.gz", 1, 10, 90_771),
    ],
)
def test_recorded_traces(name, rank, kernels, longest_us):
    found = read_sample(FORMAT, f"torch/{name}").of("nccl.kernel")
    assert len(found) == kernels
    assert {r["entity"] for r in found} == {f"rank:{rank}"}
    if longest_us:
        assert max(r["end_ns"] - r["ts_ns"] for r in found) == longest_us * 1000
