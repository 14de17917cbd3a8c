"""Endpoint rows over hand-made streams, and what goes into the report."""

from __future__ import annotations

from tests.features.stream_tables import CLIENT, END, HEAD, PIECE, REQUEST, ROUTER, Wire, run, steady


def test_probes_are_no_inference():
    wire = Wire()
    flow = wire.connect(ROUTER, 7000)
    for at in (0.1, 0.3, 0.5):
        wire.http(flow, at, REQUEST, method=1)
        wire.http(flow, at + 0.01, HEAD, status=200, streaming=2, nbytes=2)
        wire.http(flow, at + 0.01, PIECE, nbytes=2)
        wire.http(flow, at + 0.01, END, server=1)
    steady(wire, until=0.6)
    family, seen = run(wire, 0.6)
    assert sum(seen["probes"]) == 3
    assert sum(seen["arrivals"]) == 0
    assert all(r.request_ns is None for r in family.rows_for_report(wire.directory, wire.directory.taps))


def test_a_body_that_trickles_in_is_an_upload():
    wire = Wire()
    flow = wire.connect(CLIENT, 5000)
    wire.http(flow, 0.02, REQUEST, method=2, nbytes=10_000)
    for at in (0.03, 0.5, 0.9):
        wire.http(flow, at, PIECE, server=0, nbytes=500)
    _, seen = run(wire, 1.0)
    assert seen["uploading_requests"][-1] == seen["open_requests"][-1] == 1


def test_the_report_has_finished_and_open_streams_in_order():
    wire = Wire()
    wire.ask(wire.connect(CLIENT, 5001), 0.2, [0.3, 0.35], 0.351)
    wire.ask(wire.connect(CLIENT, 5000), 0.05, [0.12, 0.2])
    family, _ = run(wire, 0.5)
    rows = family.rows_for_report(wire.directory, wire.directory.taps)
    assert [(r.client, r.endpoint, len(r.chunk_ns), r.end_ns is None) for r in rows] == [
        ("10.9.0.1:5000", "10.9.0.2:8000", 2, True),
        ("10.9.0.1:5001", "10.9.0.2:8000", 2, False),
    ]
    assert rows[0].frame is not None
    assert rows[0].frame[0] == "one.pcap"
