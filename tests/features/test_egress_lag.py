"""Pieces against the rounds of their host: lag, jitter, size of what ran in a pause."""

from __future__ import annotations

import numpy as np
import pytest

from tests.features.stream_tables import CLIENT, PIECE, STEP, Wire, ns, run, steady, with_rounds


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
    assert seen["pause_size_ratio"][worst] == pytest.approx(60 / 64, rel=0.01), (
        "against an unseen ordinary prompt"
    )
    assert seen["onset"][worst]["common_pause_s"] == ns(0.96)
