"""Vantage points, roles and groups, learned from packets alone."""

import numpy as np
import pytest

from skewscope.features.graph import Graph, grow
from tests.features.packet_tables import SYN, Net, cell, play

A, B, C, D = "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"
GATE, CLIENT = "10.0.0.8", "10.0.0.9"


def talk(net, flow, taps, times=range(0, 50, 5), way=0):
    """Packets in both directions at some taps."""
    for ms in times:
        net.packet(ms, flow, way, taps, payload_bytes=100)
        net.packet(ms + 1, flow, 1 - way, taps)


def learned(net, until_ms=None):
    return play(net, Graph(), until_ms=until_ms)[-1]["host"]


def test_the_tap_of_a_host_is_the_one_where_it_has_a_part_in_all():
    net = Net(("n0", "n1"))
    ab, ac, bc = net.flow(A, B), net.flow(A, C), net.flow(B, C)
    talk(net, ab, (0, 1))
    talk(net, ac, 0)
    talk(net, bc, 1)
    graph = learned(net)
    own = {h: int(graph.own_tap[net.host(h)]) for h in (A, B, C)}
    assert own == {A: 0, B: 1, C: -1}
    assert graph.vantage[[ab, ac, bc]].tolist() == [[0, 1], [0, 0], [1, 1]]


def test_a_few_foreign_packets_do_not_take_a_tap_away():
    """Broadcasts and flooded frames of neighbours."""
    net = Net(("n0",))
    ab, ac, bc = net.flow(A, B), net.flow(A, C), net.flow(B, C)
    talk(net, ab, 0, range(0, 90, 2))
    talk(net, ac, 0, range(0, 90, 2))
    talk(net, bc, 0, (5, 50))
    assert learned(net).own_tap[net.host(A)] == 0


def test_a_tap_in_the_middle_is_nobody_s():
    net = Net(("switch",))
    for pair in ((A, B), (C, D)):
        talk(net, net.flow(*pair), 0)
    graph = learned(net)
    assert set(graph.own_tap.tolist()) == {-1}
    assert graph.vantage[1].tolist() == [0, 0], "but what it shows is judged from it"


@pytest.mark.parametrize("order", [("n0", "n1"), ("n1", "n0")])
def test_the_tap_of_the_only_peer_is_not_taken_for_the_own_one(order):
    """All that B's tap shows is A's as well, but A's own tap shows more of A."""
    net = Net(order)
    mine, peers = order.index("n0"), order.index("n1")
    talk(net, net.flow(A, B), (mine, peers))
    talk(net, net.flow(A, C), mine)
    graph = learned(net)
    assert graph.own_tap[net.host(A)] == mine
    assert graph.own_tap[net.host(B)] == peers


def test_a_tap_that_shows_one_pair_may_be_either_s():
    net = Net(("pair",))
    talk(net, net.flow(A, B), 0)
    graph = learned(net)
    assert [int(graph.own_tap[net.host(h)]) for h in (A, B)] == [0, 0]


def test_each_end_is_judged_from_its_own_tap_whichever_saw_it_first():
    net = Net(("n1", "n0"))
    ab, ac, bd = net.flow(A, B), net.flow(A, C), net.flow(B, D)
    net.packet(0, ab, 0, 0)
    for flow, taps in ((ab, (0, 1)), (ac, 1), (bd, 0)):
        talk(net, flow, taps, range(5, 50, 5))
    assert learned(net).vantage[ab].tolist() == [1, 0]


def test_an_own_tap_that_is_learned_late_is_used_from_then_on():
    net = Net(("n0", "n1"))
    ab, ac, cd = net.flow(A, B), net.flow(A, C), net.flow(C, D)
    talk(net, cd, 0, range(0, 40, 2))  # what the tap shows first is a neighbour's
    talk(net, ab, (1, 0), range(0, 40, 10))
    talk(net, ac, 0, range(100, 4_000, 5))
    assert learned(net, until_ms=100).vantage[ab].tolist() == [1, 1]
    assert learned(net).vantage[ab].tolist() == [0, 1]


def test_of_three_taps_on_a_flow_the_own_ones_are_kept():
    net = Net(("switch", "router", "n0", "n1"))
    ab, ac, bd, cd = net.flow(A, B), net.flow(A, C), net.flow(B, D), net.flow(C, D)
    for flow, taps in ((ac, (0, 1, 2)), (bd, (0, 1, 3)), (cd, (0, 1))):
        talk(net, flow, taps)
    talk(net, ab, (0, 1, 2, 3), range(10, 290, 10))
    assert learned(net).vantage[ab].tolist() == [2, 3]


def test_traffic_is_counted_once_however_many_taps_see_it():
    net = Net(("n0", "n1"))
    ab, ac, bd = net.flow(A, B), net.flow(A, C), net.flow(B, D)
    for flow, taps in ((ab, (0, 1)), (ac, 0), (bd, 1)):
        talk(net, flow, taps, range(0, 100, 10))
    rows = learned(net)
    assert cell(rows, A, "tx_bytes") == 20 * 166
    assert cell(rows, A, "rx_packets") == 20
    assert cell(rows, B, "rx_bytes") == 10 * 166 + 10 * 66


def test_roles():
    net = Net(("n0",))
    asked, passed = net.flow(CLIENT, GATE), net.flow(GATE, A)
    group = net.flow(A, B)
    for flow in (asked, passed):
        net.packet(0, flow, flags=SYN)
        net.http(1, flow, 1)
        net.http(5, flow, 2, way=1)
    net.message(2, group, 1)
    graph = learned(net)
    client = {h for h in (A, B, GATE, CLIENT) if graph.is_client()[net.host(h)]}
    assert client == {CLIENT}
    assert [bool(graph.serves[net.host(h)]) for h in (A, GATE, CLIENT)] == [True, True, False]
    assert graph.server[[asked, passed, group]].tolist() == [1, 1, -1]
    assert graph.collective[[asked, group]].tolist() == [False, True]


def test_a_response_alone_tells_the_server():
    """The capture began after the request."""
    net = Net(("n0",))
    asked = net.flow(CLIENT, A)
    net.packet(0, asked)
    net.http(5, asked, 2, way=1)
    graph = learned(net)
    assert graph.server[asked] == 1
    assert graph.is_client()[net.host(CLIENT)]
    assert not graph.is_client()[net.host(A)]


def test_groups_grow_and_merge():
    net = Net(("n0",))
    for h in (A, B, C, D):
        net.host(h)
    for ms, pair in ((0, (C, D)), (100, (A, B)), (200, (B, C))):
        net.message(ms, net.flow(*pair), 1)
    found = [r["host"] for r in play(net, Graph())]
    ids = [net.host(h) for h in (A, B, C, D)]
    groups = [sorted(map(tuple, f.groups.values())) for f in found]
    assert groups[-1] == [tuple(ids)]
    assert found[-1].groups == {ids[0]: ids}
    assert [int(found[-1].member[i]) for i in ids] == [ids[0]] * 4


def test_two_groups_stay_two():
    net = Net(("n0",))
    for pair in ((A, B), (C, D)):
        net.message(0, net.flow(*pair), 1)
    assert len(learned(net).groups) == 2


def test_growing_keeps_what_is_there():
    old = np.arange(6).reshape(3, 2)
    assert grow(old, 2, -1) is old
    new = grow(old, 100, -1)
    assert new.shape == (100, 2)
    assert new[:3].tolist() == old.tolist()
    assert set(new[3:].ravel().tolist()) == {-1}
    assert grow(np.zeros(0, dtype=np.int32), 1, 7).tolist() == [7] * 64
