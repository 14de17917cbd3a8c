import json

from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.sources.formats.nccl_json import FORMAT
from tests.sources.formats.reading import SECOND, is_told, read, read_sample, samples

PERF = {
    "header": {"id": "0xa", "rank": 2, "n_ranks": 8, "nnodes": 1},
    "metadata": {"dump_timestamp_us": 1_700_000_000_000_000, "hostname": "w3", "pid": 5},
    "coll_perf": {"coll": "AllReduce", "coll_sn": 1407, "coll_msg_size_bytes": 1024, "coll_exec_time_us": 60},
}
STATUS = {
    "nccl_version": "2.29.1",
    "timestamp": "2025-12-19 13:06:53",
    "communicators_count": 1,
    "communicators": [
        {
            "hash": "0xae",
            "size": 2,
            "missing_ranks_count": 1,
            "ranks": [
                {
                    "rank": 0,
                    "host": "a",
                    "pid": 1,
                    "nvml_dev": 3,
                    "status": {"peer": 1, "code": 2},
                    "collective_counts": {"AllReduce": 9},
                }
            ],
            "missing_ranks": [
                {"rank": 1, "host": "b", "pid": 2, "nvml_dev": 0, "status": {"considered_dead": True}}
            ],
        }
    ],
}

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["rank", "peer", "host", "status", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def test_a_collective_ends_at_the_latest_when_it_was_dumped():
    text = json.dumps(PERF) + "\n" + json.dumps(PERF) + "\n"
    assert is_told(FORMAT, text)
    row = read(FORMAT, text, host="").rows[1]
    assert (row["entity"], row["kind"], row["code"], row["peer"]) == ("w3/rank:2", "nccl.perf", 1407, "0xa")
    assert (row["ts_ns"], row["end_ns"]) == (1_700_000_000 * SECOND - 60_000, 1_700_000_000 * SECOND)
    assert row["fields"]["msg_size_bytes"] == 1024


def test_ranks_that_are_missing_or_dead_are_named():
    text = json.dumps(STATUS, indent=1)
    assert is_told(FORMAT, text)
    found = read(FORMAT, text)
    assert [(r["kind"], r["entity"], r["code"]) for r in found.rows] == [
        ("nccl.version", "", 22901),
        ("nccl.ras.rank", "a/gpu3", 0),
        ("nccl.ras.dead", "b/gpu0", 1),
        ("nccl.ras.incomplete", "", 1),
    ]
    assert found.of("nccl.ras.rank")[0]["fields"]["status"] == {"peer": 1, "code": 2}


@settings(deadline=None)
@given(
    st.sampled_from(["header", "metadata", "coll_perf", "communicators", "peer", "event", "ras"]), anything
)
def test_members_may_be_anything(member, value):
    for document in (PERF, STATUS, {"event": "PEER_DEAD", "peer": {"host": "x"}}):
        read(FORMAT, json.dumps({**document, member: value}))


def test_a_damaged_record_costs_only_itself():
    text = json.dumps(PERF) + '\n{"header": {"id": "0xa", oops\n' + json.dumps(PERF) + "\n"
    found = read(FORMAT, text)
    assert len(found.of("nccl.perf")) == 2
    assert any("damaged" in note for note in found.notes)


@samples
def test_recorded_documents():
    perf = read_sample(FORMAT, "nccl/inspector_v4.jsonl", host="").rows
    assert [(r["code"], r["fields"]["operation"], r["end_ns"] - r["ts_ns"]) for r in perf] == [
        (1407, "AllReduce", 61_974_000),
        (1231, "ReduceScatter", 41_057_000),
    ]
    (missing,) = read_sample(FORMAT, "nccl/ras_status.json").of("nccl.ras.missing")
    assert (missing["entity"], missing["code"]) == ("172.16.64.245/gpu1", 1)
    (peer,) = read_sample(FORMAT, "nccl/ras_monitor_peer_dead.json").rows
    assert (peer["entity"], peer["fields"]["event"]) == ("172.16.64.245/gpu1", "PEER_DEAD")
