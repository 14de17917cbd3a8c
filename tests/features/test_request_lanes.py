from __future__ import annotations

import numpy as np

from skewscope.features.request_lanes import CLOSE, END, HEAD, STREAM_BITS, Events, Lanes, lane_heads
from tests.features.stream_tables import CLIENT, PIECE, REQUEST, Wire
from tests.features.test_request_log import run


def lane(flow: int, stream: int) -> int:
    return flow << STREAM_BITS | stream


def test_lanes_of_flows_and_streams_are_apart() -> None:
    lanes = Lanes()
    lanes.reserve(5)
    keys = np.array([lane(3, 0), lane(3, 1), lane(4, 1)])
    lanes.remember(keys, np.array([7, 8, -1]))
    assert lanes.rows_of(keys).tolist() == [7, 8, -1]
    lanes.remember(keys[1:2], np.array([-1]))
    assert lanes.rows_of(keys).tolist() == [7, -1, -1]
    assert lanes._streams == {}


def test_a_close_is_repeated_for_open_and_new_streams_of_its_flow_only() -> None:
    lanes = Lanes()
    lanes.reserve(5)
    lanes.remember(np.array([lane(3, 1), lane(4, 1)]), np.array([0, 1]))
    keys = [lane(3, 0), lane(3, 5)]
    flow, kind, ts = np.array([3, 3]), np.array([CLOSE, HEAD]), np.array([9, 5])
    events = Events({"lane": np.array(keys), "flow": flow, "kind": kind, "ts_ns": ts})
    got = lanes.repeat_closes(events)
    closes = got.take(got["kind"] == CLOSE)
    assert sorted(closes["lane"].tolist()) == [lane(3, 0), lane(3, 1), lane(3, 5)]
    assert set(closes["ts_ns"].tolist()) == {9}
    assert lane_heads(np.array([1, 1, 2])).tolist() == [True, False, True]


def ask(wire: Wire, flow: int, stream: int, at: float, end: float | None = None, status: int = 0) -> None:
    wire.http(flow, at, REQUEST, method=2, stream=stream)
    wire.http(flow, at, END, server=0, stream=stream)
    wire.http(flow, at + 0.05, HEAD, status=200, streaming=1, stream=stream)
    for k in range(3):
        wire.http(flow, at + 0.05 + 0.02 * k, PIECE, nbytes=9, events=1, stream=stream)
    if end is not None:
        wire.http(flow, end, END, server=1, stream=stream, status=status)


def test_streams_of_one_connection_are_requests_of_their_own() -> None:
    wire = Wire()
    flow = wire.connect(CLIENT, 5000)
    ask(wire, flow, 1, 0.05, 0.2)
    ask(wire, flow, 3, 0.06, 0.15, status=503)
    log, ended = run(wire, 0.4)
    assert sorted(ended) == [(0.05, 0.1, 0.2, 3, 200), (0.06, 0.11, 0.15, 3, 503)]
    assert log._lanes._streams == {}


def test_what_comes_behind_an_answer_on_its_stream_is_no_request() -> None:
    wire = Wire()
    flow = wire.connect(CLIENT, 5000)
    ask(wire, flow, 1, 0.05, 0.2)
    wire.http(flow, 0.21, PIECE, server=0, nbytes=5, stream=1)
    wire.http(flow, 0.35, END, server=0, stream=1)
    log, ended = run(wire, 0.6)
    assert len(ended) == 1
    assert not log.pool["open"].any()


def test_a_reset_by_the_client_is_an_abort() -> None:
    wire = Wire()
    flow = wire.connect(CLIENT, 5000)
    ask(wire, flow, 1, 0.05)
    wire.http(flow, 0.2, END, server=0, stream=1, status=499)
    log, ended = run(wire, 0.4)
    assert ended == [(0.05, 0.1, 0.2, 3, 200)]
    assert log.pool["aborted"].sum() == 1


def test_pushed_streams_are_passed_over() -> None:
    wire = Wire()
    flow = wire.connect(CLIENT, 5000)
    wire.http(flow, 0.1, HEAD, status=200, stream=2)
    wire.http(flow, 0.1, PIECE, nbytes=9, stream=2)
    log, ended = run(wire, 0.4)
    assert ended == []
    assert not log.pool["open"].any()


def test_the_answer_to_an_upgrade_comes_on_stream_1() -> None:
    wire = Wire()
    flow = wire.connect(CLIENT, 5000)
    wire.http(flow, 0.05, REQUEST, method=2)
    wire.http(flow, 0.06, HEAD, status=101)
    wire.http(flow, 0.1, HEAD, status=200, streaming=1, stream=1)
    wire.http(flow, 0.1, PIECE, nbytes=9, events=1, stream=1)
    wire.http(flow, 0.2, END, server=1, stream=1)
    _, ended = run(wire, 0.4)
    assert ended == [(0.05, 0.1, 0.2, 1, 200)]
