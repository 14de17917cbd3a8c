"""Rounds joined over the members' own taps."""

import itertools

import numpy as np
import pytest

from skewscope.features.graph import Graph
from skewscope.features.parts import Parts
from skewscope.features.rounds import RoundFeature
from tests.features.packet_tables import MS, at, play
from tests.features.team import ADDRESSES, TRANSIT_MS, ring


def closed(net, until_ms=None):
    """Return (rows of all closed rounds as dicts, the last RoundRows)."""
    found = [r["round"] for r in play(net, Graph(), Parts(), RoundFeature(), until_ms=until_ms)]
    names = net.directory.addresses
    rows = []
    for made in found:
        r = made.rounds
        for i in range(len(r.key)):
            rows.append(
                {
                    "tag": int(r.key[i]) & 0xFFFFFFFF,
                    "who": names[int(r.member[i])],
                    "own": r.own[i] / MS,
                    "entry": (int(r.entry[i]) - at(0)) / MS,
                    "largest": int(r.largest[i]),
                    "root": int(r.root[i]),
                }
            )
    return rows, found


def own(rows, who, *tags):
    return [round(r["own"], 3) for r in rows if r["who"] == who and r["tag"] in tags]


def test_every_member_has_a_row_in_every_round():
    rows, found = closed(ring(10))
    tags = sorted({r["tag"] for r in rows})
    assert tags == list(range(1, 10)), "the last one is not known to be over"
    assert all([r["who"] for r in rows if r["tag"] == t].__len__() == 3 for t in tags)
    assert sum(float(f.columns["rounds"].sum()) for f in found) == 9
    assert found[-1].keys == [ADDRESSES[0]]


def test_own_time_needs_no_common_clock_and_is_alike_for_all():
    rows, _ = closed(ring(10, own_ms=20.0))
    for who in ADDRESSES:
        assert own(rows, who, *range(3, 9)) == pytest.approx([20.0] * 6, abs=0.01)


def test_who_is_late_is_late_in_own_time_and_others_are_not():
    rows, _ = closed(ring(12, late={(n, 1): 30.0 for n in range(5, 9)}))
    assert own(rows, ADDRESSES[1], *range(6, 10)) == pytest.approx([50.0] * 4, abs=TRANSIT_MS)
    assert own(rows, ADDRESSES[0], 4, 5) == pytest.approx([20.0] * 2, abs=0.01)
    # Who waits has its message out early and others' later: what it computes afterwards is no longer.
    assert max(own(rows, ADDRESSES[2], *range(3, 10))) == pytest.approx(20.0, abs=0.01)


def test_rows_of_a_round_are_in_order_of_entry():
    rows, found = closed(ring(12, late={(n, 0): 5.0 for n in range(12)}))
    for made in found:
        r = made.rounds
        edges = [*r.start.tolist(), len(r.key)]
        for lo, hi in itertools.pairwise(edges):
            assert len(set(r.key[lo:hi].tolist())) == 1
            assert np.all(np.diff(r.entry[lo:hi]) >= 0)
    assert {r["who"] for r in rows if r["entry"] == max(x["entry"] for x in rows)} == {ADDRESSES[0]}


def test_message_sizes_are_kept():
    rows, _ = closed(ring(8, size=lambda n: 4096 if n == 4 else 512))
    assert {r["largest"] for r in rows if r["tag"] == 5} == {4096}
    assert {r["largest"] for r in rows if r["tag"] == 3} == {512}


def test_a_round_that_a_member_never_enters_is_given_up_after_a_while():
    net = ring(60, missing=[(n, 2) for n in range(10, 60)])
    rows, _ = closed(net)
    assert {r["tag"] for r in rows if r["who"] == ADDRESSES[2]} <= set(range(1, 11))
    assert 12 in {r["tag"] for r in rows if r["who"] == ADDRESSES[0]}


def test_when_each_member_spoke_last_is_known():
    net = ring(8, missing=[(7, 2)])
    _, found = closed(net)
    last = {net.directory.addresses[a]: (t - at(0)) / MS for a, t in found[-1].last_out.items()}
    assert last[ADDRESSES[2]] < last[ADDRESSES[0]] - 15
    assert last[ADDRESSES[0]] == pytest.approx(last[ADDRESSES[1]])


def test_two_groups_with_the_same_tags_stay_apart():
    others = ("10.0.1.1", "10.0.1.2", "10.0.1.3")
    net = ring(8)
    net.taps = (*net.taps, "m0", "m1", "m2")
    second = ring(8, own_ms=30.0, members=others)
    shift = len(net.directory.addresses) - 1
    flows = len(net.directory.flows) - 1
    net.directory.addresses += second.directory.addresses[1:]
    for flow in list(second.directory.flows)[1:]:
        flow.a, flow.b = flow.a + shift, flow.b + shift
        net.directory.flows.append(flow)
    for name in ("packets", "messages"):
        for row in second.rows[name]:
            moved = {"src": shift, "dst": shift, "flow": flows, "tap": 3}
            net.rows[name].append({**row, **{k: row[k] + v for k, v in moved.items()}})
    net.directory.taps += [type(net.directory.taps[0])(3 + i, f"m{i}.pcap") for i in range(3)]
    rows, found = closed(net)
    assert sorted({k for f in found for k in f.keys}) == [ADDRESSES[0], others[0]]
    assert own(rows, ADDRESSES[1], 4) == pytest.approx([20.0], abs=0.01)
    assert own(rows, others[1], 4) == pytest.approx([30.0], abs=0.01)


def test_one_tap_alone_knows_its_own_host():
    net = ring(10)
    for name in ("packets", "messages"):
        net.rows[name] = [r for r in net.rows[name] if r["tap"] == 1]
    rows, _ = closed(net)
    assert own(rows, ADDRESSES[1], 4, 5, 6) == pytest.approx([20.0] * 3, abs=TRANSIT_MS)


def test_no_messages_no_rounds():
    net = ring(1)
    net.rows["messages"] = []
    rows, found = closed(net)
    assert rows == []
    assert found[-1].keys == []
