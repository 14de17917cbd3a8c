"""Requests and streams out of HTTP rows, TLS records and closes."""

from __future__ import annotations

import numpy as np
import pytest

from skewscope.features import request_log
from skewscope.features.request_log import RequestLog
from tests.features.stream_tables import CLIENT, END, HEAD, PIECE, REQUEST, Wire, ns


def run(wire: Wire, seconds: float, tick: int = 100_000_000):
    """Feed a capture; return the log and what ended, as (request, first, end, chunks, status) in s."""
    log, ended = RequestLog(), []
    for slice_ in wire.slices(seconds, tick):
        activity = log.absorb(slice_, wire.graph())
        for row in activity.ended.tolist():
            p = {n: int(v[row]) for n, v in log.pool.items()}
            times = [
                round((p[n] - ns(0)) / 1e9, 3) if p[n] else None for n in ("request_ns", "first_ns", "end_ns")
            ]
            ended.append((*times, p["chunks"], p["status"]))
    return log, ended


def test_a_stream_has_request_first_byte_chunks_and_end():
    wire = Wire()
    wire.ask(wire.connect(CLIENT, 5000), 0.05, [0.12, 0.2, 0.28], 0.281)
    _, ended = run(wire, 0.5)
    assert ended == [(0.05, 0.12, 0.281, 3, 200)]


@pytest.mark.parametrize("tick", [10_000_000, 30_000_000, 500_000_000])
def test_any_width_of_the_slices_gives_the_same_streams(tick):
    wire = Wire()
    flow = wire.connect(CLIENT, 5000)
    wire.ask(flow, 0.05, [0.12, 0.2], 0.201)
    wire.ask(flow, 0.25, [0.31, 0.39], 0.391)
    _, ended = run(wire, 0.5, tick)
    assert ended == [(0.05, 0.12, 0.201, 2, 200), (0.25, 0.31, 0.391, 2, 200)]


def test_keep_alive_requests_within_one_slice_stay_apart():
    wire = Wire()
    flow = wire.connect(CLIENT, 5000)
    for at in (0.01, 0.03, 0.05):
        wire.ask(flow, at, [at + 0.005, at + 0.01], at + 0.011)
    _, ended = run(wire, 0.1)
    assert [e[0] for e in ended] == [0.01, 0.03, 0.05]
    assert all(e[3] == 2 for e in ended)


def test_a_capture_that_begins_in_a_stream_knows_no_request():
    wire = Wire()
    flow = wire.connect(CLIENT, 5000)
    for at in (0.02, 0.1, 0.18):
        wire.http(flow, at, PIECE, nbytes=80, events=1)
    wire.http(flow, 0.181, END, server=1)
    _, ended = run(wire, 0.3)
    assert ended == [(None, 0.02, 0.181, 3, 0)]


def test_a_close_ends_a_stream_and_says_who():
    wire = Wire()
    flow = wire.connect(CLIENT, 5000)
    wire.ask(flow, 0.01, [0.05, 0.1])
    wire.close(flow, 0.12, server=0, flags=4)
    log, ended = run(wire, 0.2)
    assert ended == [(0.01, 0.05, 0.12, 2, 200)]
    assert log.pool["aborted"].any()


def test_a_second_request_ends_one_whose_end_was_lost():
    wire = Wire()
    flow = wire.connect(CLIENT, 5000)
    wire.ask(flow, 0.01, [0.05, 0.1])
    wire.ask(flow, 0.3, [0.35], 0.351)
    _, ended = run(wire, 0.5)
    assert ended == [(0.01, 0.05, 0.1, 2, 200), (0.3, 0.35, 0.351, 1, 200)]


def test_a_connection_seen_at_two_taps_counts_once():
    wire = Wire()
    flow = wire.connect(CLIENT, 5000)
    wire.ask(flow, 0.01, [0.05], 0.051)
    wire.taps[flow] = 1
    wire.ask(flow, 0.0101, [0.0501], 0.0511)
    _, ended = run(wire, 0.2)
    assert len(ended) == 1


def test_tls_turns_of_direction_are_requests():
    wire = Wire()
    flow = wire.connect(CLIENT, 50_000, server_port=443)
    wire.record(flow, 0.01, 0, 69)  # the client's Finished
    wire.record(flow, 0.02, 0, 700)
    for at in (0.06, 0.14, 0.22):
        wire.record(flow, at, 1, 180)
    wire.record(flow, 0.3, 0, 700)
    wire.record(flow, 0.34, 1, 180)
    wire.close(flow, 0.4, server=0)
    _, ended = run(wire, 0.5)
    assert ended == [(0.02, 0.06, 0.22, 3, 0), (0.3, 0.34, 0.4, 1, 0)]


def test_a_late_head_that_was_cut_off_hides_the_first_token():
    wire = Wire()
    flow = wire.connect(CLIENT, 5000)
    wire.http(flow, 0.01, REQUEST, method=2)
    wire.http(flow, 0.06, HEAD, status=200, streaming=1)
    wire.http(flow, 0.11, PIECE, nbytes=80)
    wire.rows["packets"].append(
        {**wire.rows["http"][1], "flags": 24, "payload_bytes": 300, "captured_bytes": 48, "kind": 0}
    )
    log = RequestLog()
    log.prompt_ns = np.array([20e6])
    (slice_,) = wire.slices(0.2, 200_000_000)
    activity = log.absorb(slice_, wire.graph())
    assert log.pool["first_ns"][activity.first].tolist() == [ns(0.06)]
    assert activity.chunk_gap_ns.tolist() == [0, 50_000_000]


def test_open_requests_are_bounded(monkeypatch):
    monkeypatch.setattr(request_log, "MAX_OPEN", 256)
    wire = Wire()
    for i in range(300):
        wire.http(wire.connect(CLIENT, 1000 + i), 0.01 + i * 1e-4, REQUEST, method=2)
    log, _ = run(wire, 0.2)
    assert log.dropped == 44
    assert int(log.pool["open"].sum()) == 256
