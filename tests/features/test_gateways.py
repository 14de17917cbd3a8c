"""Both legs of a gateway's streams, and who waits in it."""

from __future__ import annotations

import numpy as np
import pytest

from skewscope.features.gateways import COLUMNS, Gateways
from skewscope.features.streams import Streams
from tests.features.stream_tables import CLIENT, ENGINE, ROUTER, Wire, ns


def run(wire: Wire, seconds: float):
    """Return {column: values} of the gateway's windows, and the onsets of each."""
    streams, family, found, onset = Streams(), Gateways(), [], []
    with np.errstate(invalid="ignore", divide="ignore"):
        for slice_ in wire.slices(seconds):
            endpoint = streams.update(slice_, {"host": wire.graph()})
            rows = family.update(slice_, {"endpoint": endpoint})
            if rows.keys:
                assert list(rows.keys) == ["10.9.0.4"]
                found.append({n: v[0] for n, v in rows.columns.items()})
                onset.append({n: int(v[0]) for n, v in rows.onset_ns.items()})
    return {n: np.array([w[n] for w in found]) for n in COLUMNS}, onset


def stream(wire: Wire, k: int, at: float, *, block: int = 1, wait: float = 0.001, pieces: int = 20) -> None:
    """Send one request through the gateway: it waits `wait` s there, and comes back in blocks of pieces."""
    times = [at + wait + 0.05 * (i + 1) for i in range(pieces)]
    out = [times[min(i // block * block + block - 1, pieces - 1)] + 0.0005 for i in range(pieces)]
    wire.ask(wire.connect(CLIENT, 20_000 + k, ROUTER, 80), at, out, out[-1] + 0.001)
    wire.ask(wire.connect(ROUTER, 30_000 + k, ENGINE, 8000), at + wait, times, times[-1] + 0.001)


def test_a_gateway_that_passes_on_holds_nothing():
    wire = Wire()
    for k in range(12):
        stream(wire, k, 0.02 + 0.25 * k)
    seen, onset = run(wire, 4.0)
    told = seen["held_chunks"][np.isfinite(seen["held_chunks"])]
    assert len(told) > 10
    assert told.max() < 0.5
    assert seen["queued"].max() == 0
    assert all(o == {"held_share": 0, "queued": 0} for o in onset)


def test_blocks_are_pieces_held_back_for_all():
    wire = Wire()
    for k in range(4):
        stream(wire, k, 0.02 + 0.1 * k)
    for k in range(4, 10):
        stream(wire, k, 1.6 + 0.1 * k, block=8)
    seen, onset = run(wire, 3.6)
    assert seen["held_chunks"][-3] > 1.5
    assert seen["held_share"][-3] > 0.5
    assert seen["held_s"][-3] == pytest.approx(0.05 * seen["held_chunks"][-3], rel=0.05)
    assert ns(2.0) <= onset[-3]["held_share"] <= ns(2.6)


def test_the_legs_may_differ_in_size():
    """What is learned of whole streams, chunk framing or TLS, is not taken for a block."""
    wire = Wire()
    for k in range(16):
        at = 0.02 + 0.2 * k
        times = [at + 0.001 + 0.05 * (i + 1) for i in range(12)]
        wire.ask(
            wire.connect(CLIENT, 20_000 + k, ROUTER, 80), at, [t + 0.0005 for t in times], times[-1] + 0.001
        )
        flow = wire.connect(ROUTER, 30_000 + k, ENGINE, 8000)
        wire.ask(flow, at + 0.001, times, times[-1] + 0.001, piece=130)
    seen, _ = run(wire, 4.0)
    told = seen["held_chunks"][np.isfinite(seen["held_chunks"])]
    assert len(told) > 10
    assert told.max() < 0.5


def test_who_is_not_passed_on_waits_and_the_ceiling_is_flat():
    wire = Wire()
    for k in range(12):  # two at a time, each for a second
        begins = 0.1 + 1.0025 * (k // 2)
        came = 0.05 + 0.1 * k if k > 1 else begins - 0.001
        stream(wire, k, came, wait=begins - came)
    seen, onset = run(wire, 4.0)
    assert seen["upstream"].max() == 2
    assert seen["plateau"][20] == 1.0
    assert seen["queued_min"][20] >= 4
    assert onset[20]["queued"] == pytest.approx(ns(0.25), abs=2e6)


def test_an_engine_alone_is_no_gateway():
    wire = Wire()
    wire.ask(wire.connect(CLIENT, 20_000), 0.1, [0.2, 0.3, 0.4], 0.5)
    assert run(wire, 1.0)[1] == []
