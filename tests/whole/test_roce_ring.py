"""A tensor-parallel group over RoCE, from packets to the verdict. Synthetic captures, marked as such."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skewscope.app import pipeline
from skewscope.lab.synth.roce_ring import Ring, RingFault, write

RING = Ring(steps=150, collectives=4, own_s=300e-6, gap_s=4e-3, message_bytes=4096, channels=1)
ADAPTIVE = replace(RING, channels=2, qps=2, split=True, message_bytes=131_072, steps=100)


def told(folder, ring, *faults):
    """Return (report, [(condition, rank or rank of the link of the first culprit)])."""
    truth = write(replace(ring, faults=faults), folder)
    assert truth["synthetic"]
    report = pipeline.run(sorted(folder.glob("*.pcap")))
    return report, [
        (i.condition, truth["ranks"].index(i.culprits[0].id.split("->")[0]) if i.culprits else -1)
        for i in report.incidents
    ]


def test_a_healthy_ring_is_a_group_whose_steps_are_rounds_and_stays_silent(tmp_path):
    report, found = told(tmp_path, RING)
    assert found == []
    (group,) = report.groups
    assert len(group.members) == 4
    assert group.framing == "ring, NCCL over RoCE"
    assert group.step_s == pytest.approx(5.5e-3, rel=0.1)
    assert 120 <= group.rounds <= 150


@pytest.mark.parametrize("ring", [RING, ADAPTIVE], ids=["plain", "adaptive"])
def test_a_slow_rank_is_named(tmp_path, ring):
    _, found = told(tmp_path, ring, RingFault("slow_rank", 2, 2.5, start_step=ring.steps // 2))
    assert found == [("c20", 2)]


def test_a_late_receiver_is_named_and_not_the_sender_that_waits_for_it(tmp_path):
    _, found = told(tmp_path, RING, RingFault("slow_receiver", 1, 400e-6, start_step=75))
    assert found == [("c20", 1)]


@pytest.mark.parametrize(("seed", "target"), [(1, 2), (4, 0)])
def test_losses_are_put_down_to_their_link_and_to_no_rank(tmp_path, seed, target):
    ring = replace(RING, seed=seed)
    report, found = told(tmp_path, ring, RingFault("loss", target, 0.005, start_step=60))
    assert found == [("c25", target)]
    assert report.incidents[0].culprits[0].kind == "link"


def test_a_receiver_without_buffers_is_named_and_no_rank_is_slow(tmp_path):
    ring = replace(RING, ranks=3, channels=2, seed=5)
    _, found = told(tmp_path, ring, RingFault("rnr", 2, 0.03, start_step=50))
    assert found == [("c26", 2)]


def test_a_rank_that_stops_now_and_then_is_named(tmp_path):
    report, found = told(tmp_path, RING, RingFault("slow_rank", 3, 250.0, start_step=70, share=0.02))
    assert [who for _, who in found] == [3]
    assert {"c38", "c20"} & {report.incidents[0].condition, *report.incidents[0].also}


@pytest.mark.parametrize(("seed", "target"), [(1, 1), (2, 3)])
def test_marks_and_notifications_are_put_down_to_the_link_that_they_are_on(tmp_path, seed, target):
    ring = replace(RING, seed=seed)
    report, found = told(tmp_path, ring, RingFault("congestion", target, 0.3, start_step=75))
    assert found == [("c23", target)]
    assert report.incidents[0].culprits[0].kind == "link"


def test_a_few_marks_from_the_beginning_are_how_senders_share_a_network(tmp_path):
    _, found = told(tmp_path, RING, RingFault("congestion", 1, 0.01))
    assert found == []
