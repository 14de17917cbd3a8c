"""Rounds of NCCL over RoCE: numbered without a tag, late senders told from late receivers."""

import numpy as np
import pytest

from skewscope.features.graph import Graph
from skewscope.features.parts import Parts
from skewscope.features.rounds import RoundFeature
from skewscope.features.untagged import UNTAGGED
from tests.features.nccl_team import ADDRESSES, LASTS_MS, REDUCE_MS, TRANSIT_MS, Team
from tests.features.packet_tables import MS, at, play

HOP = TRANSIT_MS + LASTS_MS + REDUCE_MS


def closed(team):
    """Return the closed rounds as dicts, times in ms, and the last graph."""
    found = play(team.net, Graph(), Parts(), RoundFeature())
    names = team.net.directory.addresses
    rows = []
    for made in found:
        r = made["round"].rounds
        for i in range(len(r.key)):
            rows.append(
                {
                    "step": int(r.key[i]) & 0xFFFFFFFF,
                    "kind": int(r.key[i]) >> 32,
                    "who": ADDRESSES.index(names[int(r.member[i])]),
                    "entry": (int(r.entry[i]) - at(0)) / MS,
                    "data": int(r.data[i]),
                    **{n: getattr(r, n)[i] / MS for n in ("own", "inside", "cleared", "unready")},
                }
            )
    return rows, found[-1]["host"]


def by_step(rows):
    """Return {step: {member: row}} of the steps all of whose members are there."""
    steps = {}
    for row in rows:
        steps.setdefault(row["step"], {})[row["who"]] = row
    return {s: m for s, m in steps.items() if len(m) == 4}


def test_a_step_is_a_round_of_all_members():
    team = Team()
    rows, graph = closed(team)
    assert [len(m) for m in graph.groups.values()] == [4]
    assert {r["kind"] for r in rows} == {UNTAGGED}
    steps = by_step(rows)
    assert len(steps) >= 35
    assert len(steps) * 4 == len(rows), "no round in which a member is missing"
    assert all(m[w]["data"] == 3 * 6 * 4096 for m in steps.values() for w in m)


def test_a_round_is_the_same_step_for_every_member():
    team = Team()
    rows, _ = closed(team)
    for members in by_step(rows).values():
        entries = [members[w]["entry"] for w in range(4)]
        assert any(np.allclose(entries, begun, atol=1e-3) for begun in team.begun)


def test_own_time_is_what_the_member_held_the_step_for():
    """The gap, an own time per collective, and the additions between its messages in and out."""
    rows, _ = closed(Team())
    steps = by_step(rows)
    # Grants arrive a transit late, so the first message of a collective is held for that long too.
    first = TRANSIT_MS + 0.001
    busy = 5.0 + 3 * (0.3 + first + REDUCE_MS) + 3 * 5 * REDUCE_MS
    for members in list(steps.values())[2:]:
        for row in members.values():
            assert row["own"] + row["inside"] == pytest.approx(busy, abs=0.1)


def test_a_late_sender_holds_its_steps_longer_and_was_cleared():
    rows, _ = closed(Team(late_sender={2: 0.5}, from_step=40, steps=80))
    late = list(by_step(rows).values())[-20:]
    for members in late:
        busy = {w: m["own"] + m["inside"] for w, m in members.items()}
        others = np.median([busy[w] for w in (0, 1, 3)])
        assert busy[2] - others == pytest.approx(1.5, abs=0.05)
        assert members[2]["cleared"] == pytest.approx(1.5, abs=0.1), "it was cleared all the time"


def test_a_late_receiver_is_told_from_the_sender_that_waits_for_it():
    rows, _ = closed(Team(late_receiver={2: 0.5}, from_step=40, steps=80))
    late = list(by_step(rows).values())[-20:]
    for members in late:
        assert members[2]["unready"] - members[0]["unready"] == pytest.approx(1.5, abs=0.1)
        assert members[1]["cleared"] < 0.5, "member 1 sent as soon as it was cleared"
        assert members[1]["own"] > members[1]["cleared"]


def test_clocks_that_differ_by_milliseconds_do_not_mix_steps():
    straight = by_step(closed(Team())[0])
    skewed = by_step(closed(Team(offset={1: 1.5, 2: -1.2, 3: 0.4}))[0])
    assert len(skewed) >= len(straight) - 1
    last = list(skewed.values())[-5:]
    for members in last:
        assert max(m["own"] for m in members.values()) < 6.5


def test_lost_messages_shift_one_step_and_no_further():
    lost = frozenset({(30, 1, 5), (30, 1, 6), (35, 0, 0)})
    team = Team(lost=lost)
    steps = by_step(closed(team)[0])
    for members in list(steps.values())[-15:]:
        entries = [members[w]["entry"] for w in range(4)]
        assert any(np.allclose(entries, begun, atol=1e-3) for begun in team.begun)
        assert all(m["data"] == 3 * 6 * 4096 for m in members.values())


def test_a_capture_that_begins_in_mid_step_comes_into_step():
    team = Team()
    rows = team.net.rows["messages"]
    for tap, skipped in ((0, 7), (1, 31), (2, 0), (3, 90)):
        gone = [r for r in rows if r["tap"] == tap][:skipped]
        for row in gone:
            rows.remove(row)
    steps = by_step(closed(team)[0])
    assert len(steps) >= 33
    for members in steps.values():
        entries = [members[w]["entry"] for w in range(4)]
        assert any(np.allclose(entries, begun, atol=1e-3) for begun in team.begun)


def test_a_stop_in_the_middle_of_a_step_does_not_end_it():
    team = Team(frozen=(40, 1, 2, 30.0))
    rows, _ = closed(team)
    steps = by_step(rows)
    stopped = [m for m in steps.values() if m[2]["inside"] > 29.0]
    assert len(stopped) == 1
    assert all(stopped[0][w]["inside"] + stopped[0][w]["own"] < 7.0 for w in (0, 1, 3))
    assert all(m["data"] == 3 * 6 * 4096 for m in stopped[0].values())


def test_a_clear_to_send_alone_makes_no_group():
    team = Team(steps=10)
    team.net.rows["messages"] = [r for r in team.net.rows["messages"] if r["kind"] == 3]
    _, graph = closed(team)
    assert graph.groups == {}


def test_other_rdma_transfers_and_control_traffic_make_no_group():
    for framing in (4, 5):
        team = Team(steps=10)
        for row in team.net.rows["messages"]:
            row["framing"] = framing
        rows, graph = closed(team)
        assert graph.groups == {}
        assert not rows
