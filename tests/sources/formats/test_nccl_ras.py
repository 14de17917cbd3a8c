from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.sources.formats.nccl_ras import FORMAT
from tests.sources.formats.reading import is_told, read, read_sample, samples

LATE = """Communicators... (0.00s)
#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different collective operation counts
  3 ranks have launched up to operation 6650
  1 ranks have launched up to operation 6649
  Rank 2 -- GPU 5 managed by process 77 on node n9
"""


def test_the_rank_that_lags_is_named():
    assert is_told(FORMAT, LATE)
    (row,) = read(FORMAT, LATE).rows
    assert (row["kind"], row["entity"], row["code"], row["peer"]) == (
        "nccl.ras.mismatch",
        "n9/gpu5",
        1,
        "27a079b828ff1a75",
    )
    assert row["fields"] == {"majority": 3, "pid": 77, "rank": 2, "says": "launched up to operation 6649"}


def test_a_process_belongs_to_the_complaint_above_it():
    text = (
        "Errors\n======\n\nDEAD\n  1 job process is considered dead\n  Process 7 on node n9 managing GPUs"
        " 0,1\n"
    )
    assert [(r["kind"], r["entity"]) for r in read(FORMAT, text).rows] == [
        ("nccl.ras.dead", "n9/gpu0"),
        ("nccl.ras.dead", "n9/gpu1"),
    ]


def test_missing_ranks_are_listed():
    text = (
        "#0-0 (cf264af53edbe986) INCOMPLETE\n  Missing communicator data from 4 ranks\n  The missing ranks:"
        " 3, 5-7\n"
    )
    assert [r["code"] for r in read(FORMAT, text).of("nccl.ras.missing")] == [3, 5, 6, 7]


def test_a_range_without_end_is_bounded():
    text = "#0-0 (cf264af53edbe986) INCOMPLETE\n  The missing ranks: 0-999999999, 1-999999999\n"
    assert len(read(FORMAT, text).rows) == 4096


@settings(deadline=None)
@given(st.lists(st.sampled_from(LATE.splitlines()) | st.text(max_size=40), max_size=12))
def test_any_order_of_lines_is_taken(parts):
    read(FORMAT, "\n".join(parts))


@samples
def test_the_recorded_excerpts():
    found = read_sample(FORMAT, "nccl/ras_text_excerpts.txt")
    late = [r for r in found.of("nccl.ras.mismatch") if r["code"] == 6]
    assert [r["fields"]["rank"] for r in late] == [0, 2, 3, 4, 5, 7]
    assert {r["fields"]["errors"] for r in found.of("nccl.ras.group")} == {"OK", "MISMATCH", "INCOMPLETE"}
    assert [r["entity"] for r in found.of("nccl.ras.dead")] == ["172.16.64.213/gpu5"]
    assert [r["code"] for r in found.of("nccl.ras.timeout")] == [2]
    (peer,) = found.of("nccl.ras.peer")
    assert (peer["entity"], peer["fields"]["event"], peer["peer"]) == ("172.16.64.245/gpu1", "PEER_DEAD", "")
    assert peer["ts_ns"] == 1_766_149_627 * 10**9
