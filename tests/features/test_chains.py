"""Rounds of micro-batches: own time of a stage, numbers that agree between stages, what is not known."""

import numpy as np
import pytest

from skewscope.features.chain_kernel import SENT
from skewscope.features.graph import Graph
from skewscope.features.groups import Groups
from skewscope.features.parts import Parts
from skewscope.features.rounds import RoundFeature
from tests.features.chain_team import GLOO, NCCL_SOCKET, Line, constant, names
from tests.features.packet_tables import MS, at, cell, play

EVEN = (5.0, 5.0, 5.0, 5.0)


def closed(line):
    """Return {stage: [(number, entry ms, own ms, data bytes)]} of the closed rounds of a chain."""
    found = {}
    for made in play(line.net, Graph(), Parts(), RoundFeature()):
        r = made["round"].rounds
        for i in np.flatnonzero(r.key >> 32 == SENT).tolist():
            row = int(r.key[i]) & 0xFFFFFFFF, (int(r.entry[i]) - at(0)) / MS, r.own[i] / MS, int(r.data[i])
            found.setdefault(names(line, [r.member[i]])[0], []).append(row)
    return found


@pytest.mark.parametrize("framing", [1, 2, 3], ids=["gloo", "sockets", "roce"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_each_stage_has_its_own_time_whatever_it_waits_for(framing, depth):
    """The third stage sets the pace; nobody else is charged for it."""
    own, draw = (4.0, 6.0, 9.0, 5.0), np.random.default_rng(depth)
    found = closed(Line(lambda stage, n: own[stage] * draw.normal(1.0, 0.02), 150, depth, framing=framing))
    assert sorted(found) == [0, 1, 2, 3]
    for stage, rows in found.items():
        assert len(rows) > 20
        told = [t for _, _, t, _ in rows if t > 0][-50:]
        less = 0.5 if framing == GLOO else 0.0  # the end of the send before it, which may come later
        assert np.median(told) == pytest.approx(own[stage], abs=0.1 + less)


def test_numbers_of_the_stages_agree():
    line = Line(constant(*EVEN))
    found = closed(line)
    entry = {stage: {n: ms for n, ms, *_ in rows} for stage, rows in found.items()}
    shared = sorted(set.intersection(*(set(e) for e in entry.values())))
    assert len(shared) > 25
    for n in shared:
        times = [entry[stage][n] for stage in range(4)]
        assert times == sorted(times)
        assert times[3] - times[0] == pytest.approx(15.0, abs=0.2)


def test_a_micro_batch_of_many_messages_is_one_round():
    line = Line(constant(*EVEN), pieces=6)
    found = closed(line)
    assert {data for *_, data in found[1][3:]} == {6 * 8192}
    assert np.median([t for *_, t, _ in found[1]]) == pytest.approx(5.0, abs=0.05)


def test_a_slow_micro_batch_is_charged_to_its_stage_alone():
    found = closed(Line(lambda stage, n: 25.0 if (stage, n) == (2, 40) else 5.0))
    slow = {stage: max(t for _, _, t, _ in rows[10:]) for stage, rows in found.items()}
    assert slow[2] == pytest.approx(25.0, abs=0.1)
    assert max(slow[s] for s in (0, 1, 3)) == pytest.approx(5.0, abs=0.1)


def test_without_word_from_the_end_the_first_stage_has_no_own_time():
    found = closed(Line(constant(*EVEN), hears=False))
    assert sorted(found) == [0, 1, 2]
    assert {t for _, _, t, _ in found[0]} == {0.0}
    assert np.median([t for _, _, t, _ in found[1]]) == pytest.approx(5.0, abs=0.1)


def test_micro_batches_that_end_at_the_head_are_not_waited_for():
    """Every tenth answer is a last one: its lane begins anew 40 ms later, as if for a new request."""
    late = {n for n in range(20, 90) if n % 10 == 0}
    line = Line(lambda stage, n: 5.0 + 40.0 * (stage == 0 and n in late), count=90, depth=1)
    found = closed(line)
    assert np.median([t for _, _, t, _ in found[0]]) == pytest.approx(5.0, abs=0.1)


def test_a_hole_costs_what_is_under_way_and_no_more():
    line = Line(constant(*EVEN))
    lost = line.left[30][1]
    rows = line.net.rows["messages"]
    gone = [
        r for r in rows if r["tap"] == 1 and r["src"] == line.net.host("10.0.0.2") and r["ts_ns"] == at(lost)
    ]
    assert gone
    rows.remove(gone[0])
    line.net.hole(lost, gone[0]["flow"], tap=1)
    found = closed(line)
    assert max(t for _, _, t, _ in found[1][8:]) == pytest.approx(5.0, abs=0.1)


def test_the_pace_of_a_chain_is_the_time_between_micro_batches():
    line = Line(constant(5.0, 5.0, 12.0, 5.0), depth=3, count=80)
    rows = play(line.net, Graph(), Parts(), RoundFeature(), Groups())[-2]["group"]
    assert cell(rows, "10.0.0.1", "interval_ref_s") == pytest.approx(12e-3, rel=0.05)


def test_sends_of_gloo_in_no_chain_are_no_rounds_but_input():
    """A group with a ring as well: whoever receives a send may have had to wait for it."""
    line = Line(constant(*EVEN), framing=GLOO)
    ring = line.net.flow("10.0.0.1", "10.0.0.3", 41_000, 42_000)
    for n in range(20):
        for way, (a, b) in ((0, (0, 2)), (1, (2, 0))):
            for tap in (a, b):
                line.net.message(10.0 + 20.0 * n, ring, n, way, tap, nbytes=1 << 20)
    keys = set()
    for made in play(line.net, Graph(), Parts(), RoundFeature()):
        keys |= {int(key) >> 32 for key in made["round"].rounds.key}
    assert keys == {4}


def test_a_socket_chain_is_one_only_after_some_windows():
    found = [r["part"] for r in play(Line(constant(*EVEN), framing=NCCL_SOCKET).net, Graph(), Parts())]
    assert [len(p.stages) for p in found[:3]] == [0, 0, 1]
    (order,) = found[-1].stages.values()
    assert names(Line(constant(*EVEN)), order) == [0, 1, 2, 3]
