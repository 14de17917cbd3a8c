"""How groups communicate: patterns, volumes and stages with known numbers."""

import numpy as np
import pytest

from skewscope.features.graph import Graph
from skewscope.features.parts import ALL_TO_ALL, CHAIN, RING, TREE, UNKNOWN, Parts
from tests.features.nccl_team import ADDRESSES, Team
from tests.features.packet_tables import Net, at, cell, play

NAMES = [f"10.0.1.{i}" for i in range(1, 6)]


def net_of(edges, times=(1.0, 30.0), size=1000):
    """Members that send NCCL messages along directed edges: (from, to) or (from, to, bytes)."""
    count = 1 + max(max(e[:2]) for e in edges)
    net = Net([f"n{i}" for i in range(count)])
    for k, edge in enumerate(edges):
        a, b, nbytes = (*edge, size)[:3]
        flow = net.flow(NAMES[a], NAMES[b], 50_000 + k, 4791, proto=17)
        for ms in times:
            put(net, ms + 0.01 * k, flow, a, b, nbytes)
    return net


def put(net, ms, flow, a, b, nbytes, lasts=0.0):
    for tap, when in ((a, ms), (b, ms + 0.005)):
        net.message(when, flow, 0, 0, tap, framing=3, kind=0, nbytes=nbytes, end_ns=at(when + lasts))


def last(net):
    return play(net, Graph(), Parts())[-1]["part"]


def pattern(*edges):
    (found,) = last(net_of(edges)).pattern.values()
    return found


def test_patterns_of_a_group():
    assert pattern((0, 1), (1, 2), (2, 3), (3, 0)) == RING
    assert pattern((0, 1), (1, 0)) == RING
    both = [(0, 1), (1, 2), (2, 3), (3, 0)]
    assert pattern(*both, *[(b, a) for a, b in both]) == RING
    assert pattern((0, 1), (1, 2), (2, 3)) == CHAIN
    assert pattern((0, 1)) == CHAIN
    assert pattern((0, 1), (1, 0), (0, 2), (2, 0), (2, 3), (3, 2)) == TREE
    assert pattern(*[(a, b) for a in range(4) for b in range(4) if a != b]) == ALL_TO_ALL
    assert pattern((0, 1), (1, 2), (2, 0), (2, 3)) == UNKNOWN


def test_what_one_tap_shows_of_a_ring_is_no_chain():
    net = Net(["n1"])
    for a, b in ((0, 1), (1, 2)):
        flow = net.flow(NAMES[a], NAMES[b], 50_000 + a, 4791, proto=17)
        for ms in (1.0, 30.0):
            net.message(ms, flow, 0, 0, 0, framing=3, kind=0, nbytes=1000, end_ns=at(ms))
    assert list(last(net).pattern.values()) == [UNKNOWN]


def test_small_talk_does_not_hide_a_ring():
    ring = [(0, 1, 90_000), (1, 2, 90_000), (2, 3, 90_000), (3, 0, 90_000)]
    assert pattern(*ring, (0, 2, 40), (0, 3, 40)) == RING


def test_a_team_over_roce_is_a_ring_and_says_so():
    found = last(Team(steps=20).net)
    assert list(found.pattern.values()) == [RING]
    assert list(found.framing.values()) == [3]


def test_received_shares_show_the_skew_of_an_all_to_all():
    """Member 2 gets three times what the others get: the hot expert."""
    edges = [(a, b, 3000 if b == 2 else 1000) for a in range(4) for b in range(4) if a != b]
    found = last(net_of(edges, times=(1.0, 20.0, 40.0)))
    assert list(found.pattern.values()) == [ALL_TO_ALL]
    assert cell(found, NAMES[2], "received_bytes") == 3 * 3 * 3000
    assert cell(found, NAMES[2], "received_share") == pytest.approx(0.5)
    assert cell(found, NAMES[2], "received_ratio") == pytest.approx(2.0)
    assert cell(found, NAMES[0], "received_ratio") == pytest.approx(2 / 3)
    assert cell(found, NAMES[2], "sent_bytes") == 3 * 3 * 1000


def test_stages_of_a_chain_have_their_own_time_from_input_to_output():
    """Five micro-batches under way; stage 1 takes 4 ms, stage 2 takes 7 ms and is the bottleneck."""
    net = Net(["n0", "n1", "n2", "n3"])
    flows = [net.flow(NAMES[i], NAMES[i + 1], 50_000 + i, 4791, proto=17) for i in range(3)]
    free = [0.0, 0.0, 0.0]
    for k in range(8):
        ms = 1.0 + 5.0 * k
        for stage, takes in ((0, 0.0), (1, 4.0), (2, 7.0)):
            ms = max(ms, free[stage]) + takes
            free[stage] = ms
            put(net, ms, flows[stage], stage, stage + 1, 8192, lasts=0.1)
            ms += 0.005 + 0.1
    found = last(net)
    assert list(found.pattern.values()) == [CHAIN]
    assert cell(found, NAMES[1], "stage_s") == pytest.approx(4e-3, abs=1e-5)
    assert cell(found, NAMES[2], "stage_s") == pytest.approx(7e-3, abs=1e-5)
    assert np.isnan(cell(found, NAMES[3], "stage_s"))


def test_without_messages_nothing_is_known():
    net = net_of([(0, 1)])
    net.rows["messages"] = []
    found = last(net)
    assert found.pattern == {}
    assert list(found.keys) == []


def test_addresses_of_the_team_are_the_keys():
    assert sorted(last(Team(steps=3).net).keys) == sorted(ADDRESSES)
