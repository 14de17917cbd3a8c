"""The queue in front of an endpoint, in its own steps."""

from __future__ import annotations

import numpy as np
import pytest

from tests.features.stream_tables import CLIENT, END, PIECE, REQUEST, STEP, Wire, ns, run, steady


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


def test_the_first_byte_is_timed_from_the_last_byte_of_the_request():
    wire = Wire()
    wire.ask(wire.connect(CLIENT, 5000), 0.02, [0.09, 0.14], 0.141)
    _, seen = run(wire, 0.3)
    assert seen["ttft_s"][0] == pytest.approx(0.07)
    assert np.nansum(seen["first_tokens"]) == np.nansum(seen["completions"]) == 1
