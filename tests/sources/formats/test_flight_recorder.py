import json
import pickle
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.sources.formats.flight_recorder import FORMAT, groups_by_id, rank_of
from tests.sources.formats.reading import is_told, read, read_sample, samples

ENTRY = {
    "record_id": 5,
    "pg_id": 3,
    "process_group": ("7", "TENSOR"),
    "collective_seq_id": 42,
    "p2p_seq_id": 0,
    "op_id": 42,
    "profiling_name": "nccl:all_reduce",
    "time_created_ns": 1_758_610_505_000_000_000,
    "input_sizes": [[4096, 1, 5120]],
    "input_dtypes": ["BFloat16"],
    "output_sizes": [[4096, 1, 5120]],
    "state": "scheduled",
    "time_discovered_started_ns": None,
    "time_discovered_completed_ns": None,
    "retired": False,
    "is_p2p": False,
}
DUMP = {
    "version": "2.9",
    "nccl_version": "2.27.3",
    "pg_config": {
        "0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"},
        "7": {"name": "7", "desc": "TENSOR", "ranks": "[0, 1]"},
    },
    "pg_status": {
        "0": {"last_enqueued_collective": 9, "last_started_collective": -1, "last_completed_collective": 9},
        "3": {"last_enqueued_collective": 42, "last_started_collective": -1, "last_completed_collective": 41},
    },
    "entries": [ENTRY],
}
FAULTS = {"gpu_error_1st": (12, 14), "lock_gil_1st": (9, 14)}


@pytest.mark.parametrize("data", [pickle.dumps(DUMP, 2), pickle.dumps(DUMP, 4), json.dumps(DUMP).encode()])
def test_groups_and_collectives(data):
    assert is_told(FORMAT, data, "_dump_12")
    found = read(FORMAT, data, name="_dump_12")
    assert {r["entity"] for r in found.rows} == {"rank:12"}
    assert [(r["peer"], r["code"], r["fields"]["completed"]) for r in found.of("torch.group")] == [
        ("group:0 default_pg", 9, 9),
        ("group:7 TENSOR", 42, 41),
    ]
    (row,) = found.of("torch.collective")
    assert (row["ts_ns"], row["code"], row["end_ns"], row["peer"]) == (
        ENTRY["time_created_ns"],
        42,
        0,
        "group:7 TENSOR",
    )
    assert row["fields"]["sizes"] == [[4096, 1, 5120]]
    assert row["fields"]["operation"] == "nccl:all_reduce"
    assert "without timing" in found.notes[0]


def test_point_to_point_has_its_own_numbers():
    entry = {
        **ENTRY,
        "is_p2p": True,
        "p2p_seq_id": 11,
        "time_discovered_completed_ns": 1_758_610_506_000_000_000,
    }
    (row,) = read(FORMAT, pickle.dumps({**DUMP, "entries": [entry]}), name="r_1").of("torch.collective")
    assert (row["code"], row["end_ns"]) == (11, entry["time_discovered_completed_ns"])


def test_ids_and_names_are_paired_in_the_order_of_making_unless_an_entry_contradicts():
    assert groups_by_id(DUMP, []) == ({"0": ("0", "default_pg"), "3": ("7", "TENSOR")}, {"0", "3"})
    other = {**ENTRY, "pg_id": 0, "process_group": ("7", "TENSOR")}
    assert groups_by_id(DUMP, [other]) == ({"0": ("7", "TENSOR")}, set())


@pytest.mark.parametrize(("name", "rank"), [("_dump_12", 12), ("nccl_trace_rank_3.json", 3), ("trace", -1)])
def test_the_rank_is_in_the_name(name, rank):
    assert rank_of(name) == rank


class Trap:
    def __reduce__(self):
        return (print, ("called",))


def test_a_dump_that_names_a_class_is_refused(capsys):
    found = read(FORMAT, pickle.dumps({**DUMP, "entries": [Trap()]}, 2), name="_dump_0")
    assert found.rows == []
    assert found.notes == ["not read: opcode GLOBAL is not one of plain data"]
    assert capsys.readouterr().out == ""


def test_a_list_that_holds_itself_many_times_over_is_not_walked():
    bomb: list = ["x"]
    for _ in range(60):
        bomb = [bomb, bomb]
    loop: list = []
    loop.append(loop)
    entry = {
        **ENTRY,
        "input_sizes": bomb,
        "process_group": (bomb, loop),
        "profiling_name": loop,
        "state": bomb,
    }
    found = read(FORMAT, pickle.dumps({**DUMP, "entries": [entry]}, 4), name="_dump_0")
    assert len(found.of("torch.collective")) == 1


@settings(deadline=None)
@given(
    st.sampled_from([*ENTRY]),
    st.none()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.lists(st.integers() | st.lists(st.integers()), max_size=3),
)
def test_members_of_entries_may_be_anything(member, value):
    read(FORMAT, pickle.dumps({**DUMP, "entries": [{**ENTRY, member: value}]}, 4), name="_dump_0")


@settings(deadline=None)
@given(
    st.sampled_from([*DUMP]),
    st.none() | st.integers() | st.text(max_size=3) | st.dictionaries(st.text(max_size=2), st.integers()),
)
def test_members_of_dumps_may_be_anything(member, value):
    read(FORMAT, pickle.dumps({**DUMP, member: value}, 4), name="_dump_0")


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_taken(data):
    for begin in (b"\x80\x02", b"{", pickle.dumps(DUMP, 2)[:200]):
        read(FORMAT, begin + data)


def reached(case):
    """(last enqueued, last completed) by group and rank over the 16 dumps of a case."""
    out = defaultdict(dict)
    for rank in range(16):
        found = read_sample(FORMAT, f"torch/flight_recorder_v2_9/{case}/_dump_{rank}")
        for r in found.of("torch.group"):
            assert r["peer"], "each group is told by name and description"
            out[r["peer"]][rank] = (r["code"], r["fields"]["completed"])
    return out


@samples
def test_a_locked_interpreter_has_nothing_open_and_stopped_where_its_peers_wait():
    expert = "EXPERT_MODEL_PARALLEL_GROUP"
    groups = {g: ranks for g, ranks in reached("lock_gil_1st").items() if g.endswith(" " + expert)}
    behind = {
        rank
        for ranks in groups.values()
        for rank, (enqueued, completed) in ranks.items()
        if enqueued == completed and enqueued < max(e for e, _ in ranks.values())
    }
    assert behind == set(FAULTS["lock_gil_1st"])


@samples
def test_a_gpu_error_completes_less_than_its_peers():
    late = set()
    for group, ranks in reached("gpu_error_1st").items():
        if group.endswith((" TENSOR_MODEL_PARALLEL_GROUP", " EXPERT_MODEL_PARALLEL_GROUP")):
            most = max(completed for _, completed in ranks.values())
            late |= {rank for rank, (_, completed) in ranks.items() if completed < most}
    assert late == set(FAULTS["gpu_error_1st"])


@samples
def test_the_recorded_json():
    found = read_sample(FORMAT, "torch/flight_recorder_v2_5_example.json")
    (row,) = found.of("torch.collective")
    assert row["end_ns"] - row["ts_ns"] == 39_036_605
    assert row["fields"]["state"] == "completed"
