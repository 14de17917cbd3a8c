"""Places of flows: given out, found again, and taken from the flow longest silent."""

import numpy as np
import pytest

from skewscope.core.schemas import PACKETS
from skewscope.core.tables import Table
from skewscope.features import tcp_kernel as k
from skewscope.features import tcp_lanes as module
from skewscope.features.tcp_lanes import Lanes

TCP, UDP = 6, 17


def table(flows, payload=10, proto=TCP, way=0):
    n = len(flows)
    columns = {"flow": flows, "payload_bytes": [payload] * n, "proto": [proto] * n, "way": [way] * n}
    return Table(PACKETS, {"ts_ns": np.arange(n), **{c: np.array(v) for c, v in columns.items()}})


def gathered(lanes, flows, **more):
    made = table(flows, **more)
    vantage = np.zeros((2_000, 2), dtype=np.int32)
    return lanes.gather(made, 2_000, vantage)


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(module, "MAX_PLACES", 4)
    monkeypatch.setattr(module, "MAX_RINGS", 4)
    monkeypatch.setattr(module, "FIRST_PLACES", 2)
    return Lanes()


def test_each_lane_is_told_once_and_every_tcp_packet_is_a_row():
    lanes = Lanes()
    cols, touched = gathered(lanes, [3, 5, 3, 3])
    assert sorted(touched.tolist()) == [6, 10]
    assert cols[:, 3].tolist() == [3, 5, 3, 3]
    assert len(set(cols[:, 14].tolist())) == 2
    assert (lanes.state[lanes.rows(touched), k.L_SLOT] >= 0).all()


def test_packets_without_a_flow_are_passed_over_and_udp_is_counted():
    lanes = Lanes()
    cols, touched = gathered(lanes, [0, 7, 7], proto=UDP, way=1)
    assert len(cols) == 0
    assert touched.tolist() == [15]
    (row,) = lanes.rows(touched)
    assert lanes.acc[row, [k.A_PACKETS, k.A_BYTES]].tolist() == [2, 20]


def test_a_flow_keeps_its_place():
    lanes = Lanes()
    gathered(lanes, [3, 5])
    before = lanes.place[[3, 5]].tolist()
    gathered(lanes, list(range(1, 1_500)))
    assert lanes.place[[3, 5]].tolist() == before
    assert len(set(lanes.place[1:1_500].tolist())) == 1_499


def test_the_flow_longest_silent_makes_room_and_leaves_nothing_behind(small):
    for flows in ([1], [2], [3], [4], [1]):
        gathered(small, flows)
    at = small.rows(np.array([4]))
    small.state[at, k.L_UNA] = 99
    small.ring[small.state[at, k.L_SLOT]] = 7
    gathered(small, [9])
    assert (small.place[[1, 3, 4, 9]] >= 0).all()
    assert small.rows(np.array([4])).tolist() == [-1]
    (row,) = small.rows(np.array([18]))
    assert small.state[row, k.L_UNA] == -1
    assert not small.ring[small.state[row, k.L_SLOT]].any()


def test_of_more_flows_than_places_the_first_are_followed(small):
    cols, touched = gathered(small, [10, 11, 12, 13, 14, 15])
    assert sorted(touched.tolist()) == [20, 22, 24, 26]
    assert len(cols) == 4
    assert len(small.state) == 8


def test_without_rings_left_lanes_are_followed_without_them(small):
    small.gather(table([1, 2, 3, 4]), 20, np.zeros((20, 2), dtype=np.int32))
    small.gather(table([1, 2, 3, 4], way=1), 20, np.zeros((20, 2), dtype=np.int32))
    slots = small.state[small.rows(np.arange(2, 10)), k.L_SLOT]
    assert sorted(slots.tolist()) == [-1, -1, -1, -1, 0, 1, 2, 3]
