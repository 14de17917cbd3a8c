"""The path between a client and the server that it asks."""

import numpy as np
import pytest

from skewscope.features.graph import Graph
from skewscope.features.legs import RECENT, Legs
from skewscope.features.transport import Transport
from tests.features.packet_tables import Net, at, cell, play

CLIENT, OTHER, ENGINE, PEER = "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"
LEG = f"{CLIENT}->{ENGINE}"


def served(clients=(CLIENT,)):
    """Return a net with the engine's tap and the flows of its clients."""
    net = Net(("engine",))
    flows = []
    for client in clients:
        flow = net.flow(client, ENGINE)
        net.http(1, flow, 1)
        net.ack(1, flow, 0, way=0)
        net.ack(1, flow, 0)
        flows.append(flow)
    return net, flows


def stream(net, flow, until, step=20, rtt=2.0, start=10):
    """Response segments and their acknowledgements."""
    for i, ms in enumerate(range(start, until, step)):
        net.data(ms, flow, 100, 100 * i, way=1, ip_id=i)
        net.ack(ms + rtt, flow, 100 * (i + 1), way=0)


def legs(net, until_ms=None):
    return [r["leg"] for r in play(net, Graph(), Transport(), Legs(), until_ms=until_ms)]


def test_segments_are_counted_by_direction_over_two_seconds():
    net, (flow,) = served()
    stream(net, flow, 3_000)
    for i in range(10):
        net.data(15 + 10 * i, flow, 50, 50 * i, way=0)
    found = legs(net)
    assert found[0].keys == [LEG]
    assert cell(found[5], LEG, "segments_up") == 10
    assert cell(found[25], LEG, "segments_up") == 0
    assert cell(found[25], LEG, "segments_down") == RECENT * 5


def test_losses_are_a_share_and_dated_by_the_first():
    net, (flow,) = served()
    stream(net, flow, 2_000)
    net.data(305, flow, 100, 100 * 10, way=1, ip_id=900)  # sent again: with one tap a loss
    found = legs(net)
    lost = [cell(r, LEG, "lost_down") for r in found]
    assert max(lost) == 1
    assert max(cell(r, LEG, "lost_down_share") for r in found) > 0.01
    assert all(cell(r, LEG, "lost_up") == 0 for r in found)
    dated = {int(r.onset_ns["lost_down"][0]) for r in found if cell(r, LEG, "lost_down")}
    assert dated == {at(210)}, "by the copy that was lost, and it stays"


def test_a_reader_that_stops():
    net, (flow, other) = served((CLIENT, OTHER))
    stream(net, flow, 500)
    stream(net, other, 1_500, start=11)
    net.ack(500, flow, 2_500, way=0, window=0)
    found = legs(net)
    assert cell(found[-1], LEG, "zero_window_s") == pytest.approx(1.0, abs=0.01)
    assert cell(found[-1], LEG, "zero_windows") == 1
    assert cell(found[-1], LEG, "peers_zero_window_s") == 0
    assert cell(found[-1], f"{OTHER}->{ENGINE}", "peers_zero_window_s") == pytest.approx(1.0, abs=0.01)
    assert int(found[-1].onset_ns["zero_windows"][found[-1].keys.index(LEG)]) == at(500)


def test_round_trips_and_what_is_usual():
    net, (flow,) = served()
    stream(net, flow, 1_000, rtt=2.0)
    stream(net, flow, 2_000, rtt=30.0, start=1_010, step=40)
    found = legs(net)
    assert cell(found[5], LEG, "rtt_s") == pytest.approx(0.002)
    assert cell(found[5], LEG, "rtt_ref_s") == pytest.approx(0.002)


def test_what_was_not_measured_is_unknown():
    net, (flow,) = served()
    net.data(10, flow, 100, 0, way=1)
    found = legs(net, until_ms=500)
    assert np.isnan(cell(found[-1], LEG, "rtt_s"))
    assert np.isnan(cell(found[-1], LEG, "rtt_ref_s"))


def test_hosts_of_the_cluster_have_no_leg():
    net, (flow,) = served()
    stream(net, flow, 300)
    inner = net.flow(ENGINE, PEER, 1, 2)
    net.message(50, inner, 1)
    assert legs(net)[-1].keys == [LEG]


def test_the_number_of_legs_is_bounded(monkeypatch):
    monkeypatch.setattr("skewscope.features.legs.MAX_LEGS", 3)
    clients = [f"10.1.0.{i}" for i in range(8)]
    net, flows = served(clients)
    for flow in flows:
        stream(net, flow, 300)
    assert len(legs(net)[-1].keys) == 3
