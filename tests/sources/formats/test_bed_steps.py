import json

from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.sources.formats.bed_steps import FORMAT
from tests.sources.formats.reading import is_told, read, read_sample, samples

STEP = {"step": 4, "op": 2, "n": 3, "t0": 1000, "t1": 5000, "ar": [[2000, 2500], [3000, 3100]]}


def test_steps_and_their_collectives():
    text = json.dumps(STEP) + "\noops\n"
    assert is_told(FORMAT, text)
    found = read(FORMAT, text)
    step, first, second = found.rows
    assert (step["kind"], step["code"], step["end_ns"] - step["ts_ns"]) == ("engine.step", 4, 4000)
    assert step["fields"] == {"collectives": 2, "sort": "decode", "tokens": 3}
    assert [(r["ts_ns"], r["end_ns"]) for r in (first, second)] == [(2000, 2500), (3000, 3100)]
    assert found.notes == ["1 lines are no steps and were left out"]


@settings(deadline=None)
@given(
    st.sampled_from([*STEP]),
    st.none() | st.integers() | st.text(max_size=3) | st.lists(st.lists(st.integers() | st.none())),
)
def test_members_may_be_anything(member, value):
    read(FORMAT, json.dumps({**STEP, member: value}))


@samples
def test_the_ranks_of_a_recorded_run_made_the_same_steps():
    seen = [read_sample(FORMAT, f"testbed/healthy/n{rank}.jsonl.gz") for rank in range(4)]
    steps = [{r["code"] for r in found.of("engine.step")} for found in seen]
    assert min(map(len, steps)) > 80
    assert set.intersection(*steps) == min(steps, key=len)
    for found in seen:
        each = found.of("engine.all_reduce")
        assert len(each) == 2 * len(found.of("engine.step"))
        assert all(r["ts_ns"] < r["end_ns"] for r in each)
