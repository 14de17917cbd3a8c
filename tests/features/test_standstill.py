"""A group that stopped: for how long, and who stopped or left first."""

import numpy as np
import pytest

from skewscope.core.features import FeatureRows
from skewscope.features.graph import Graph
from skewscope.features.groups import Groups
from skewscope.features.parts import Parts
from skewscope.features.rounds import RoundFeature
from skewscope.features.standstill import Standstill
from skewscope.features.transport import Transport
from tests.features.nccl_team import ADDRESSES as NCCL
from tests.features.nccl_team import Team
from tests.features.packet_tables import ACK, FIN, MS, RST, at, cell, play
from tests.features.team import ADDRESSES, ring

A, B, C = ADDRESSES


def endpoints(waiting, chunks):
    class Endpoints:
        SPEC = type("Spec", (), {"scope": "endpoint"})

        def update(self, slice_, others):
            names = ("open_requests", "active_streams", "chunks")
            columns = {n: np.array([v]) for n, v in zip(names, (waiting, 0.0, chunks), strict=True)}
            return FeatureRows("endpoint", [f"{A}:8000"], columns)

    return Endpoints()


def watched(net, until_ms=None, waiting=2.0, chunks=0.0):
    families = (
        Graph(),
        Transport(),
        Parts(),
        RoundFeature(),
        Groups(),
        endpoints(waiting, chunks),
        Standstill(),
    )
    return [r["standstill"] for r in play(net, *families, until_ms=until_ms)]


def leave(net, ms, member, flags=FIN | ACK):
    """A member ends its connection to the next one."""
    flow = 1 + member
    net.packet(ms, flow, 0, member, flags=flags)


def test_a_group_at_work_is_never_silent_for_long():
    found = watched(ring(60))
    assert max(cell(r, A, "silence_ratio") for r in found[3:]) < 6
    assert {cell(r, h, "left") for r in found for h in ADDRESSES} == {0.0}


def test_silence_and_demand_are_those_of_the_group():
    last = watched(ring(30), until_ms=1_500)[-1]
    assert list(last.keys) == [A, B, C]
    assert {cell(last, h, "silence_s") for h in ADDRESSES} == {cell(last, A, "silence_s")}
    assert cell(last, A, "silence_s") == pytest.approx(0.88, abs=0.03)
    assert [cell(last, h, "demand") for h in ADDRESSES] == [2.0] * 3
    assert cell(watched(ring(30), until_ms=1_500, waiting=0.0)[-1], A, "demand") == 0.0


def test_output_that_still_drains_is_no_standstill():
    """While pieces leave, the front end is late; the group is done."""
    last = watched(ring(30), until_ms=1_500, chunks=3.0)[-1]
    assert cell(last, A, "silence_s") == 0.0


def test_who_stopped_first():
    net = ring(30, missing=[(29, 1)])
    last = watched(net, until_ms=1_500)[-1]
    assert [cell(last, h, "stopped_first") for h in ADDRESSES] == [0, 1, 0]
    assert cell(last, B, "behind_s") == pytest.approx(0.0205, abs=0.002)
    assert cell(last, A, "behind_s") == 0.0


@pytest.mark.parametrize("flags", [FIN | ACK, RST])
def test_who_left_first(flags):
    """A process that dies closes its connections; the others follow within a second."""
    net = ring(30)
    leave(net, 650, 2, flags)
    leave(net, 900, 0)
    leave(net, 950, 1)
    last = watched(net, until_ms=1_500)[-1]
    assert [cell(last, h, "left_first") for h in ADDRESSES] == [0, 0, 1]
    assert [cell(last, h, "left") for h in ADDRESSES] == [1, 1, 1]


def test_an_end_long_before_the_stop_is_another_matter():
    net = ring(160)
    leave(net, 100, 1)
    last = watched(net, until_ms=4_000)[-1]
    assert [cell(last, h, "left") for h in ADDRESSES] == [0, 0, 0]


def test_a_group_that_works_again_has_nobody_missing():
    net = ring(30)
    leave(net, 650, 2)
    ring(10, net=net, start_ms=4_000)
    found = watched(net)
    assert cell(found[12], C, "left_first") == 1
    assert cell(found[-1], C, "left_first") == 0


def test_a_member_that_freezes_over_roce_is_the_first_to_stop():
    """It stops in the middle of a step; its neighbours send what they still can, then wait."""
    team = Team(steps=60)
    stop = team.begun[50][2] + 0.06
    names = team.net.directory.addresses
    for table in ("messages", "packets"):
        kept = []
        for row in team.net.rows[table]:
            after = (row["ts_ns"] - at(stop)) / MS
            if after < 0 or (after < 0.05 and names[row["src"]] != NCCL[2]):
                kept.append(row)
        team.net.rows[table] = kept
    last = watched(team.net, until_ms=stop + 2_000)[-1]
    assert cell(last, NCCL[2], "stopped_first") == 1.0
    assert {cell(last, m, "stopped_first") for m in NCCL if m != NCCL[2]} == {0.0}
    assert cell(last, NCCL[2], "silence_s") == pytest.approx(2.0, abs=0.2)
    assert cell(last, NCCL[2], "silence_ratio") > 20
    assert cell(last, NCCL[2], "demand") == 2.0
