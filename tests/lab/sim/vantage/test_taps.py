"""Packets and messages: complete streams, and late ranks that show as late hosts."""

import numpy as np

from skewscope.core.directory import Directory
from skewscope.lab.sim.case import simulate
from skewscope.lab.sim.compiled import kernel as k
from skewscope.lab.sim.scenario import draw
from skewscope.lab.sim.ticks import Ticks
from skewscope.lab.sim.vantage import taps


def test_every_answered_request_is_a_stream_of_its_tokens() -> None:
    case = simulate(draw("ok_first_day.serving", 3, duration_s=21.0), taps=True)
    http, packets = case.emission.tables["http"], case.emission.tables["packets"]
    assert len(http) == len(packets)
    assert np.array_equal(http["ts_ns"], packets["ts_ns"])
    assert np.all(np.diff(http["ts_ns"]) >= 0)
    asked = case.run.replica >= 0
    assert (http["kind"] == 1).sum() == asked.sum()
    chunks = np.bincount(http["flow"][http["kind"] == 3], minlength=len(case.emission.directory.flows))[1:]
    done = case.run.times[:, k.Q_END] > 0
    sure = done & (case.run.times[:, k.Q_END] < 20.5)
    assert np.array_equal(
        chunks[np.flatnonzero(asked).searchsorted(np.flatnonzero(sure))], case.run.counts[sure, k.N_DONE]
    )


def test_sequence_numbers_follow_the_bytes() -> None:
    case = simulate(draw("ok_first_day.serving", 3, duration_s=20.0), taps=True)
    p = case.emission.tables["packets"]
    mine = p.take((p["flow"] == p["flow"][0]) & (p["way"] == 1))
    assert np.array_equal(mine["seq"][1:], (mine["seq"] + mine["payload_bytes"])[:-1])


def test_a_late_rank_is_a_late_host_on_the_wire() -> None:
    drawn = draw("c20.gpu", 7, duration_s=30.0, strength=1.5)
    run = simulate(drawn).run
    directory = Directory()
    addresses = {a: n + 1 for n, a in enumerate(drawn.cluster.addresses)}
    directory.addresses += list(addresses)
    span = drawn.onset_s + 4, drawn.onset_s + 6
    table = taps.collectives(Ticks(run), directory, addresses, 0, span, rails=2)
    slow = addresses[drawn.cluster.addresses[drawn.places["$host"][0]]]
    r = drawn.cluster.replicas[drawn.places["$replica"][0]]
    members = [addresses[drawn.cluster.addresses[h]] for h in r.hosts]
    peer = next(m for m in members if m != slow)
    mine, other = (
        np.sort(table["ts_ns"][(table["src"] == m) & (table["tap"] % 2 == 0)]) for m in (slow, peer)
    )
    assert len(mine) == len(other) > 1000
    assert np.mean(mine - other) > 0
    assert np.all(table["end_ns"] >= table["ts_ns"])
