"""Gaps, steps and roles of an endpoint."""

from __future__ import annotations

import numpy as np
import pytest

from tests.features.stream_tables import CLIENT, ENGINE, ROUTER, STEP, Wire, run, steady


def test_a_steady_endpoint_is_at_its_usual_pace():
    wire = Wire()
    steady(wire)
    _, seen = run(wire, 2.0)
    assert seen["active_streams"][-1] == 4
    assert seen["chunk_gap_ref_s"][-1] == pytest.approx(STEP, rel=0.02)
    assert seen["chunk_gap_ratio"][-1] == pytest.approx(1.0, rel=0.02)
    assert sum(seen["steps"]) == 39, "the first send has no silence before it"
    assert seen["pause_ratio"][-1] == pytest.approx(1.0, rel=0.05)
    assert seen["open_requests"][-1] == seen["full_steps"][-1] == 0
    assert np.isnan(seen["egress_lag_share"][-1]), "no round was seen: not known, not zero"


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
