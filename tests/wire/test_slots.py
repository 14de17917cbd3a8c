from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.core.directory import Directory
from skewscope.wire.streams import Limits, StreamFramer
from tests.wire.segments import Segment, gloo_message, packets, run, same


def test_silent_flow_loses_its_place_only_when_another_needs_one() -> None:
    half = gloo_message(1, 500)
    segments = [
        Segment(half[:100], ts=0, flow=1),
        Segment(half[100:200], 1100, ts=10_000, flow=1),  # alone: nobody needs its place
        Segment(gloo_message(2), ts=20_000, flow=2),
        Segment(gloo_message(2), ts=20_500, flow=3),
    ]
    framer = StreamFramer(Directory(), Limits(idle_ns=1000))
    tables = framer.feed(*packets(segments))
    assert framer.counters()["flows_evicted"] == 1
    assert tables["messages"]["flow"].tolist() == [1, 2, 3]
    assert tables["messages"]["end_ns"].tolist() == [0, 20_000, 20_500]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 3)), max_size=60),
    st.integers(1, 6),
    st.lists(st.integers(0, 80), max_size=6),
)
def test_eviction_does_not_depend_on_the_split(steps, flows, cuts) -> None:  # type: ignore[no-untyped-def]
    segments = [
        Segment(gloo_message(2, tag=i), 1000 + 48 * at, flow=flow) for i, (flow, at) in enumerate(steps)
    ]
    whole, _ = run(segments, limits=Limits(flows=flows))
    assert same(whole, run(segments, cuts, Limits(flows=flows))[0])
    assert same(whole, run(segments, range(len(segments)), Limits(flows=flows))[0])
