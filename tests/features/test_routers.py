"""Choices and load of a router over two replicas."""

from __future__ import annotations

import numpy as np
import pytest

from skewscope.features.routers import Routers
from skewscope.features.streams import Streams
from tests.features.stream_tables import CLIENT, ENGINE, ROUTER, SECOND, Wire, ns


def run(wire: Wire, seconds: float):
    """Return {column: values} of the router's windows, and the onsets of the last."""
    streams, family, found, onset = Streams(), Routers(), [], {}
    with np.errstate(invalid="ignore", divide="ignore"):
        for slice_ in wire.slices(seconds):
            host = wire.graph()
            endpoint = streams.update(slice_, {"host": host})
            rows = family.update(slice_, {"host": host, "endpoint": endpoint})
            if rows.keys:
                assert list(rows.keys) == ["10.9.0.4"]
                found.append({n: v[0] for n, v in rows.columns.items()})
                onset = {n: int(v[0]) for n, v in rows.onset_ns.items()}
    return {n: [w[n] for w in found] for n in family.SPEC.columns}, onset


def route(wire: Wire, choices: list[int], every: float = 0.1, life: int = 6) -> None:
    """Send a request every so often to the replica named; each streams for `life` steps."""
    for k, server in enumerate(choices):
        at = 0.02 + every * k
        pieces = [at + 0.05 * (i + 1) for i in range(life)]
        wire.ask(wire.connect(ROUTER, 10_000 + k, server), at, pieces, pieces[-1] + 0.001)


def test_round_robin_is_no_change():
    wire = Wire()
    route(wire, [ENGINE, SECOND] * 15)
    seen, _ = run(wire, 3.0)
    assert max(seen["share_evidence"]) < 4
    assert seen["backends"][-1] == 2


def test_a_fair_draw_stays_below_what_counts():
    wire = Wire()
    rng = np.random.default_rng(7)
    route(wire, [ENGINE if rng.random() < 0.5 else SECOND for _ in range(150)])
    seen, _ = run(wire, 15.0)
    assert max(seen["share_evidence"]) < 10


def test_a_change_of_shares_is_found_and_dated():
    wire = Wire()
    route(wire, [ENGINE, SECOND] * 8 + [ENGINE] * 14)
    seen, onset = run(wire, 3.0)
    assert seen["share_evidence"][-1] > 10
    assert seen["share_max_ratio"][-1] == pytest.approx(2.0)
    assert seen["share_min_ratio"][-1] == 0
    assert abs(onset["share_evidence"] - ns(1.62)) < 150e6


def test_usual_weights_are_learned_and_are_no_change():
    wire = Wire()
    route(wire, ([ENGINE] * 3 + [SECOND]) * 60, every=0.05, life=3)
    seen, _ = run(wire, 12.0)
    assert seen["share_evidence"][-1] < 5


def test_a_backend_that_gets_nothing_is_idle_and_its_missed_requests_count():
    wire = Wire()
    route(wire, [ENGINE, SECOND] * 5 + [ENGINE] * 20)
    seen, onset = run(wire, 3.0)
    assert seen["idle_steps"][-1] > 20
    assert seen["missed_nats"][-1] > 8
    assert abs(onset["idle_steps"] - ns(1.02)) < 150e6


def test_a_pause_in_demand_starves_nobody():
    wire = Wire()
    route(wire, [ENGINE, SECOND] * 5)
    seen, _ = run(wire, 4.0)
    assert seen["idle_steps"][-1] == seen["missed_nats"][-1] == 0


def test_work_that_gathers_on_one_replica_shows_as_load():
    wire = Wire()
    for k in range(24):
        at, server = 0.02 + 0.1 * k, ENGINE if k % 2 else SECOND
        life = 60 if k % 2 else 2
        pieces = [at + 0.05 * (i + 1) for i in range(life)]
        wire.ask(wire.connect(ROUTER, 10_000 + k, server), at, pieces)
    seen, _ = run(wire, 2.5)
    assert seen["load_skew"][-1] > 1.0
    assert seen["share_evidence"][-1] < 5


def test_one_endpoint_makes_no_router():
    wire = Wire()
    route(wire, [ENGINE] * 10)
    wire.ask(wire.connect(CLIENT, 9000, ENGINE), 0.1, [0.2], 0.21)
    seen, _ = run(wire, 1.0)
    assert seen["backends"] == []


def test_all_requests_count_until_shares_are_usual():
    wire = Wire()
    route(wire, [SECOND] + [ENGINE] * 16 + [ENGINE, SECOND] * 30, every=0.05)
    seen, _ = run(wire, 4.5)
    at = seen["new_requests"]
    first = next(i for i in range(len(at)) if sum(at[: i + 1]) >= 17)
    assert seen["whole_evidence"][first] == pytest.approx(7.98, abs=1.0)
    assert seen["whole_evidence"][-1] == 0
