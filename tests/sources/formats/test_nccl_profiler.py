import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.sources.formats.nccl_profiler import FORMAT, mended
from tests.sources.formats.reading import AT_NS, is_told, read, read_sample, samples

BEGIN = '{"name": "AllReduce", "cat": "COLL", "ph": "b", "id": 0, "pid": 7, "tid": 1, "ts": 100.5, "args": '
TEXT = (
    "[\n" + BEGIN + '{"SeqNum": 4, "Datatype": ncclFloat32, "Stream": 0x50}},\n'
    '{"name": "AllReduce", "cat": "COLL", "ph": "e", "id": 0, "pid": 7, "tid": 1, "ts": 300.5},\n'
    '{\u201cname": "RecvWait", "cat": "NET", "ph": "b", "id": 1, "pid": 7, "tid": 1, "ts": 350, '
    '"args": {"Step": 2}},\n ... [ cut ]\n{}]\n'
)


def test_steps_with_how_long_they_took():
    assert is_told(FORMAT, TEXT)
    found = read(FORMAT, TEXT)
    whole, open_end = found.rows
    assert (whole["entity"], whole["code"], whole["ts_ns"] - AT_NS) == ("n1/pid:7", 4, 100_500)
    assert whole["end_ns"] - whole["ts_ns"] == 200_000
    assert whole["fields"]["Datatype"] == "ncclFloat32"
    assert (open_end["fields"]["step"], open_end["end_ns"]) == ("RecvWait", 0)
    assert found.notes[1:] == [
        "1 lines are damaged or cut and were left out",
        "1 steps have no end in this file",
    ]


def test_what_is_printed_without_quotes_is_mended():
    assert mended('{"ph": "b", "a": 0x50, "b": ncclSum, "c": true},')["a"] == "0x50"
    assert mended("...") is None


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_taken(text):
    read(FORMAT, TEXT + '{"name": "x", "cat": "NET", "ph": "b", "ts": 1, "args": ' + text)


@samples
def test_the_recorded_example():
    found = read_sample(FORMAT, "nccl/profiler_example_events.txt")
    waits = [r for r in found.rows if r["fields"]["step"] == "RecvGpuWait"]
    assert [r["code"] for r in waits] == [0, 1, 2, 3]
    assert waits[0]["end_ns"] - waits[0]["ts_ns"] == pytest.approx(253_645, abs=2)
