"""A piece is judged against its own round, also where that is not the latest one."""

from __future__ import annotations

import numpy as np
import pytest

from tests.features.stream_tables import CLIENT, ENGINE, PIECE, Wire, run

STEP = 0.05


def many_rounds(wire: Wire, until: float, extra: dict[int, int]) -> None:
    """Ten rounds a step, a millisecond apart at its end; `extra` numbers are skipped before a step."""
    tag = 10
    for k, at in enumerate(np.arange(0.02, until, STEP)):
        tag += extra.get(k, 0)
        for r in range(10):
            wire.round(ENGINE, float(at) - 0.0045 * (10 - r), tag, 1000)
            tag += 1


def test_a_lag_of_several_rounds_is_seen():
    wire = Wire()
    many_rounds(wire, 3.0, {})
    for i in range(4):
        flow = wire.connect(CLIENT, 5000 + i)
        for at in np.arange(0.02, 3.0, STEP):
            wire.http(
                flow,
                float(at) + (0.02 if at > 1.5 and (i + int(at / STEP)) % 3 == 0 else 0.0),
                PIECE,
                nbytes=80,
            )
    _, seen = run(wire, 3.0)
    assert seen["egress_jitter_share"][-1] == pytest.approx(0.4, abs=0.1)


def test_a_prefill_that_takes_other_numbers_moves_the_phase_for_a_moment_only():
    wire = Wire()
    many_rounds(wire, 4.0, {30: 3, 45: 3})
    for i in range(4):
        flow = wire.connect(CLIENT, 5000 + i)
        for at in np.arange(0.02, 4.0, STEP):
            wire.http(flow, float(at), PIECE, nbytes=80)
    _, seen = run(wire, 4.0)
    assert abs(seen["egress_lag_share"][-1]) < 0.02
    assert abs(seen["egress_jitter_share"][-1]) < 0.02
