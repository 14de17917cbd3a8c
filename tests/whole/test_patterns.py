"""Pipeline stages and all-to-all experts, from packets to the verdict. Synthetic captures, marked as such."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skewscope.app import pipeline
from skewscope.core.scenario import Fault, Scenario, Workload
from skewscope.lab import synth
from skewscope.lab.synth import roce_patterns
from skewscope.lab.synth.roce_ring import Ring, RingFault

CHAIN = Workload(pattern="chain", message_bytes=32_768, clients=6)
EXPERTS = Workload(pattern="all_to_all", message_bytes=32_768)
ROCE_CHAIN = roce_patterns.Pattern(
    Ring(steps=110, own_s=5e-3, own_spread=0.03, message_bytes=65_536, channels=1, collectives=1), True
)
ROCE_EXPERTS = roce_patterns.Pattern(
    Ring(
        steps=110, own_s=500e-6, own_spread=0.05, message_bytes=262_144, channels=1, collectives=4, gap_s=4e-3
    ),
    False,
)
FRAMINGS = ("gloo", "nccl")


def told(folder, seed, workload, *faults):
    """Return (report, [(condition, name of the first culprit's host)])."""
    truth = synth.write(Scenario("pattern", "faulty", 3.6, seed, workload, faults), folder)
    name = {address: host for host, address in truth["hosts"].items()}
    report = pipeline.run(sorted(folder.glob("*.pcap")))
    return report, [(i.condition, name[i.culprits[0].id.split("->")[0]]) for i in report.incidents]


def told_roce(folder, pattern, *faults):
    """Return (report, [(condition, rank of the first culprit)])."""
    truth = roce_patterns.write(replace(pattern, ring=replace(pattern.ring, faults=faults)), folder)
    report = pipeline.run(sorted(folder.glob("*.pcap")))
    return report, [(i.condition, truth["ranks"].index(i.culprits[0].id)) for i in report.incidents]


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize(("seed", "under_way"), [(1, 1), (5, 2), (6, 3)])
def test_a_healthy_pipeline_stays_silent(tmp_path, framing, seed, under_way):
    report, found = told(tmp_path, seed, replace(CHAIN, framing=framing, micro_batches=under_way))
    assert found == []
    (group,) = report.groups
    assert len(group.members) == 4
    assert group.rounds > 20


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize(("seed", "stage", "under_way"), [(1, 0, 2), (2, 1, 3), (3, 2, 1), (4, 3, 2)])
def test_a_stage_that_becomes_slow_is_named(tmp_path, framing, seed, stage, under_way):
    workload = replace(CHAIN, framing=framing, micro_batches=under_way)
    _, found = told(tmp_path, seed, workload, Fault("straggler", 1.8, 3.6, stage, 1.6))
    assert found == [("c20", f"n{stage}")]


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_stage_that_stops_now_and_then_is_named(tmp_path, framing):
    workload = replace(CHAIN, framing=framing)
    _, found = told(tmp_path, 9, workload, Fault("pause", 1.8, 3.6, 1, 0.3, period_s=0.6))
    assert found == [("c38", "n1")]


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        ({"work": (1.0, 1.6, 0.8, 1.2)}, ()),
        ({}, (Fault("overload", 1.8, 3.6, -1, 2.0),)),
        ({}, (Fault("straggler", 1.8, 3.6, -1, 1.5),)),
    ],
    ids=["uneven from the beginning", "more to do for all", "all slower alike"],
)
def test_stages_of_unequal_or_more_work_are_no_stragglers(tmp_path, framing, changes, faults):
    _, found = told(tmp_path, 3, replace(CHAIN, framing=framing, **changes), *faults)
    assert found == []


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_longer_path_between_stages_is_the_links(tmp_path, framing):
    _, found = told(tmp_path, 2, replace(CHAIN, framing=framing), Fault("delay", 1.8, 3.6, 2, 0.004))
    assert found == [("c23", "n2")]


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("seed", [1, 2])
def test_healthy_experts_stay_silent(tmp_path, framing, seed):
    _, found = told(tmp_path, seed, replace(EXPERTS, framing=framing))
    assert found == []


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize(
    ("kind", "rank", "strength"), [("straggler", 1, 2.0), ("hot_expert", 2, 2.0)], ids=["slow", "hot"]
)
def test_a_slow_or_hot_expert_is_named_and_its_share_told(tmp_path, framing, kind, rank, strength):
    workload = replace(EXPERTS, framing=framing)
    report, found = told(tmp_path, 3, workload, Fault(kind, 1.8, 3.6, rank, strength))
    assert found == [("c20", f"n{rank}")]
    (share,) = [e.value for e in report.incidents[0].evidence if e.name == "received_ratio"]
    assert share > 1.5 if kind == "hot_expert" else share == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("under_way", [1, 3])
def test_a_healthy_pipeline_over_roce_is_a_chain_and_stays_silent(tmp_path, seed, under_way):
    ring = replace(ROCE_CHAIN.ring, seed=seed)
    report, found = told_roce(tmp_path, replace(ROCE_CHAIN, ring=ring, micro_batches=under_way))
    assert found == []
    assert [g.framing for g in report.groups] == ["chain, NCCL over RoCE"]


@pytest.mark.parametrize("stage", [0, 1, 3])
def test_a_slow_stage_over_roce_is_named(tmp_path, stage):
    _, found = told_roce(tmp_path, ROCE_CHAIN, RingFault("slow_rank", stage, 1.8, start_step=60))
    assert found == [("c20", stage)]


def test_uneven_stages_over_roce_stay_silent(tmp_path):
    _, found = told_roce(tmp_path, replace(ROCE_CHAIN, work=(1.0, 1.5, 0.7, 1.0)))
    assert found == []


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_healthy_experts_over_roce_stay_silent(tmp_path, seed):
    report, found = told_roce(tmp_path, replace(ROCE_EXPERTS, ring=replace(ROCE_EXPERTS.ring, seed=seed)))
    assert found == []
    assert [g.framing for g in report.groups] == ["all to all, NCCL over RoCE"]


def test_a_slow_expert_over_roce_is_named(tmp_path):
    _, found = told_roce(tmp_path, ROCE_EXPERTS, RingFault("slow_rank", 1, 3.0, start_step=60))
    assert found == [("c20", 1)]


def test_a_hot_expert_over_roce_is_named(tmp_path):
    _, found = told_roce(tmp_path, replace(ROCE_EXPERTS, hot=2, hot_ratio=2.5, hot_from=60))
    assert found == [("c20", 2)]
