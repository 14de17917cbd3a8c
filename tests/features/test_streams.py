"""Endpoint features over hand-made streams: queue, pace, pauses, lag, and what goes into the report."""

from __future__ import annotations

import numpy as np
import pytest

from skewscope.features.streams import Streams
from tests.features.stream_tables import CLIENT, END, ENGINE, HEAD, PIECE, REQUEST, ROUTER, Wire, ns

STEP = 0.05


def run(wire: Wire, seconds: float, key: str = "10.9.0.2:8000"):
    """Return (family, {column: values over windows}) for one endpoint; NaN where it has no row yet."""
    family, found = Streams(), []
    with np.errstate(invalid="ignore", divide="ignore"):
        for slice_ in wire.slices(seconds):
            rows = family.update(slice_, {"host": wire.graph()})
            at = rows.keys.index(key) if key in rows.keys else None
            found.append({n: np.nan if at is None else v[at] for n, v in rows.columns.items()})
            found[-1]["onset"] = {n: int(v[at]) for n, v in rows.onset_ns.items()} if at is not None else {}
    return family, {n: [w[n] for w in found] for n in (*family.SPEC.columns, "onset")}


def steady(wire: Wire, streams: int = 4, until: float = 2.0, port: int = 5000, client: int = CLIENT) -> list[int]:
    """Streams that begin before the capture and get a piece every step."""
    flows = [wire.connect(client, port + i) for i in range(streams)]
    for i, flow in enumerate(flows):
        for at in np.arange(0.01, until, STEP):
            wire.http(flow, float(at) + i * 1e-4, PIECE, nbytes=80, events=1)
    return flows


def test_a_steady_endpoint_is_at_its_usual_pace():
    wire = Wire()
    steady(wire)
    _, seen = run(wire, 2.0)
    assert seen["active_streams"][-1] == 4
    assert seen["chunk_gap_ref_s"][-1] == pytest.approx(STEP, rel=0.02)
    assert seen["chunk_gap_ratio"][-1] == pytest.approx(1.0, rel=0.02)
    assert sum(seen["steps"]) == 40
    assert seen["pause_ratio"][-1] == pytest.approx(1.0, rel=0.05)
    assert seen["open_requests"][-1] == seen["full_steps"][-1] == 0
    assert np.isnan(seen["egress_lag_share"][-1]), "no round was seen: not known, not zero"


def test_a_queue_is_counted_in_steps_and_dated():
    wire = Wire()
    steady(wire)
    for i in range(6):
        wire.http(wire.connect(CLIENT, 6000 + i), 1.02, REQUEST, method=2)
    _, seen = run(wire, 2.0)
    assert seen["open_requests"][-1] == 6
    assert seen["oldest_open_s"][-1] == pytest.approx(0.98, abs=0.01)
    assert 17 <= seen["oldest_open_steps"][-1] <= 21
    assert 16 <= seen["full_steps"][-1] <= 21
    assert seen["onset"][-1]["open_requests"] == ns(1.02)
    assert seen["backlog_ratio"][-1] == 1.5


def test_an_endpoint_that_stands_still_makes_no_steps():
    wire = Wire()
    steady(wire, until=1.0)
    for i in range(6):
        wire.http(wire.connect(CLIENT, 6000 + i), 1.02, REQUEST, method=2)
    _, seen = run(wire, 2.0)
    assert seen["open_requests"][-1] == 6
    assert seen["oldest_open_steps"][-1] == seen["full_steps"][-1] == 0
    assert seen["pause_ratio"][-1] > 15
    assert seen["paused_share"][-1] == 1.0


def test_freed_slots_that_stay_empty_are_counted():
    wire = Wire()
    flows = steady(wire, until=1.0)
    for at in np.arange(1.01, 2.0, STEP):
        wire.http(flows[0], float(at), PIECE, nbytes=80, events=1)
    for flow in flows[1:]:
        wire.http(flow, 0.995, END, server=1)
    wire.http(wire.connect(CLIENT, 6000), 0.9, REQUEST, method=2)
    _, seen = run(wire, 2.0)
    assert seen["freed_slots"][-1] == 3
    assert seen["empty_steps"][-1] >= 18
    assert seen["active_share"][-1] == pytest.approx(0.25, abs=0.01)


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


def test_the_first_byte_is_timed_from_the_last_byte_of_the_request():
    wire = Wire()
    wire.ask(wire.connect(CLIENT, 5000), 0.02, [0.09, 0.14], 0.141)
    _, seen = run(wire, 0.3)
    assert seen["ttft_s"][0] == pytest.approx(0.07)
    assert np.nansum(seen["first_tokens"]) == np.nansum(seen["completions"]) == 1


def test_a_body_that_trickles_in_is_an_upload():
    wire = Wire()
    flow = wire.connect(CLIENT, 5000)
    wire.http(flow, 0.02, REQUEST, method=2, nbytes=10_000)
    for at in (0.03, 0.5, 0.9):
        wire.http(flow, at, PIECE, server=0, nbytes=500)
    _, seen = run(wire, 1.0)
    assert seen["uploading_requests"][-1] == seen["open_requests"][-1] == 1


def with_rounds(wire: Wire, until: float = 2.0, sizes: dict[int, int] | None = None) -> None:
    """Two rounds a step at the engine's host, the second a millisecond before the pieces."""
    for k, at in enumerate(np.arange(0.009, until, STEP)):
        for r in range(2):
            size = (sizes or {}).get(k, 1000)
            wire.round(ENGINE, float(at) - 0.02 * (1 - r), 10 + 2 * k + r, size)


def test_lag_behind_the_rounds_is_the_hosts_own():
    wire = Wire()
    with_rounds(wire)
    steady(wire)
    _, seen = run(wire, 2.0)
    assert seen["egress_lag_s"][-1] == pytest.approx(0.0012, abs=0.0005)
    assert abs(seen["egress_lag_share"][-1]) < 0.02
    assert abs(seen["egress_jitter_share"][-1]) < 0.02


def test_pieces_held_back_at_random_are_jitter_and_not_a_lag_of_all():
    wire = Wire()
    with_rounds(wire, 3.0)
    rng = np.random.default_rng(1)
    for i in range(4):
        flow = wire.connect(CLIENT, 5000 + i)
        for at in np.arange(0.01, 3.0, STEP):
            held = rng.uniform(0, 0.045) if at > 1.5 else 0.0
            wire.http(flow, float(at) + held, PIECE, nbytes=80, events=1)
    _, seen = run(wire, 3.0)
    assert seen["egress_jitter_share"][-1] > 0.4
    assert seen["egress_lag_low_share"][-1] < 0.5 * seen["egress_lag_share"][-1]


def test_a_pause_beside_large_rounds_has_their_size():
    wire = Wire()
    sizes = {20: 60_000, 21: 60_000}
    with_rounds(wire, sizes=sizes)
    for i in range(4):
        flow = wire.connect(CLIENT, 5000 + i)
        for k, at in enumerate(np.arange(0.01, 2.0, STEP)):
            if k not in sizes:
                wire.http(flow, float(at), PIECE, nbytes=80, events=1)
    _, seen = run(wire, 2.0)
    worst = int(np.nanargmax(seen["pause_ratio"]))
    assert seen["pause_ratio"][worst] == pytest.approx(3.0, rel=0.05)
    assert seen["pause_size_ratio"][worst] == pytest.approx(60 / 64, rel=0.01), "against an unseen ordinary prompt"
    assert seen["onset"][worst]["common_pause_s"] == ns(0.96)


def test_an_address_that_asks_others_is_a_gateway():
    wire = Wire()
    steady(wire, until=0.5)
    flow = wire.connect(CLIENT, 9000, ROUTER, 8080)
    back = wire.connect(ROUTER, 9001, ENGINE, 8000)
    for f in (flow, back):
        wire.ask(f, 0.1, [0.2, 0.25], 0.26)
    _, seen = run(wire, 0.5, "10.9.0.4:8080")
    assert seen["gateway"][-1] == 1
    _, engine = run(wire, 0.5)
    assert engine["gateway"][-1] == 0


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
