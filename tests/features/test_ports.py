"""Load of each host's port."""

import numpy as np
import pytest

from skewscope.core.features import FeatureRows
from skewscope.features.graph import Graph
from skewscope.features.ports import Ports
from tests.features.packet_tables import Net, cell, play

A, B, C = "10.0.0.1", "10.0.0.2", "10.0.0.3"
PACKET_BITS = 8 * 1066


class Links:
    """Stands in for the link family."""

    SPEC = type("Spec", (), {"scope": "link"})

    def update(self, slice_, others):
        return FeatureRows("link", [A], {"delay_ratio": np.array([0.5]), "lost": np.array([3.0])})


def pour(net, flow, start, until, per_slice, way=0, tap=0):
    """Packets of 1066 bytes on the wire at an even rate."""
    for ms in np.arange(start, until, 100 / per_slice):
        net.packet(float(ms), flow, way, tap, payload_bytes=1000)


def ports(net):
    return [r["port"] for r in play(net, Graph(), Links(), Ports())]


def test_rate_ceiling_and_plateau():
    net = Net(("n0",))
    ab, ac = net.flow(A, B), net.flow(A, C)
    pour(net, ab, 0, 1_000, 10, way=1)
    pour(net, ac, 0, 1_000, 5)
    pour(net, ab, 1_000, 2_000, 40, way=1)
    found = ports(net)
    assert np.isnan(cell(found[2], A, "rate_bps")), "half a second is not yet known"
    assert cell(found[9], A, "rate_bps") == pytest.approx(100 * PACKET_BITS)
    assert cell(found[9], A, "plateau_ratio") == pytest.approx(1.0)
    assert cell(found[14], A, "plateau_ratio") == pytest.approx(0.25)
    assert cell(found[-1], A, "ceiling_bps") == pytest.approx(400 * PACKET_BITS)
    assert cell(found[-1], A, "into") == 1.0


def test_who_fills_it_and_with_what():
    net = Net(("n0",))
    ab, ac = net.flow(A, B), net.flow(A, C)
    net.http(0, ac, 1, way=1)
    pour(net, ab, 0, 1_000, 30, way=1)
    pour(net, ac, 0, 1_000, 10, way=1)
    last = ports(net)[-1]
    assert cell(last, A, "top_share") == pytest.approx(0.75)
    assert cell(last, A, "top_peer") == net.host(B)
    assert cell(last, A, "bulk_share") == pytest.approx(0.75)


def test_the_busier_direction_counts():
    net = Net(("n0",))
    ab, ac = net.flow(A, B), net.flow(A, C)
    pour(net, ab, 0, 1_000, 20)
    pour(net, ac, 0, 1_000, 5, way=1)
    assert cell(ports(net)[-1], A, "into") == 0.0
    assert cell(ports(net)[-1], A, "rate_bps") == pytest.approx(200 * PACKET_BITS)


def test_silence_is_a_rate_of_zero_at_a_tap_that_is_there():
    net = Net(("n0",))
    ab, ac = net.flow(A, B), net.flow(A, C)
    pour(net, ab, 0, 1_000, 10)
    pour(net, ac, 0, 1_000, 10)
    net.packet(2_500, ab)
    assert cell(ports(net)[-2], A, "rate_bps") == 0


def test_the_link_s_delay_and_losses_are_passed_on():
    net = Net(("n0",))
    for peer in (B, C):
        pour(net, net.flow(A, peer), 0, 1_000, 10)
    last = ports(net)[-1]
    assert (cell(last, A, "delay_ratio"), cell(last, A, "lost")) == (0.5, 3.0)


def test_clients_and_hosts_without_a_tap_have_no_port():
    net = Net(("n0",))
    asked, ac = net.flow(B, A), net.flow(A, C)
    net.http(0, asked, 1)
    for flow in (asked, ac):
        pour(net, flow, 0, 1_000, 10)
    assert list(ports(net)[-1].keys) == [A]
