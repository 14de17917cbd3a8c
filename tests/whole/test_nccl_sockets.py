"""A tensor-parallel group of NCCL over sockets, from packets to the verdict. Synthetic captures."""

from __future__ import annotations

import pytest

from skewscope.app import pipeline
from skewscope.core.scenario import Fault, Scenario, Workload
from skewscope.lab import synth

NCCL = Workload(framing="nccl")


def told(folder, seed, *faults):
    """Return (truth, report) of a run whose connections are older than the capture."""
    truth = synth.write(Scenario("nccl", "faulty", 4.0, seed, NCCL, faults), folder)
    assert truth["synthetic"]
    return truth, pipeline.run(sorted(folder.glob("*.pcap")))


@pytest.mark.parametrize("seed", [4, 6, 7])
def test_a_healthy_group_is_a_ring_and_stays_silent(tmp_path, seed):
    _, report = told(tmp_path, seed)
    assert report.incidents == []
    (group,) = report.groups
    assert len(group.members) == 4
    assert group.framing == "ring, NCCL over sockets"


@pytest.mark.parametrize(("seed", "rank"), [(7, 1), (13, 3)])
def test_a_slow_rank_is_named(tmp_path, seed, rank):
    truth, report = told(tmp_path, seed, Fault("straggler", 1.8, 3.2, rank, 2.0))
    slow = [i.culprits[0].id for i in report.incidents if i.condition == "c20"]
    assert report.incidents[0].condition == "c20"
    assert slow == [truth["hosts"][f"n{rank}"]]


@pytest.mark.parametrize(("seed", "rank"), [(7, 1), (21, 0)])
def test_nobody_else_is_named(tmp_path, seed, rank):
    """Not so yet for every seed: docs/limits.md tells of a second, wrong incident."""
    truth, report = told(tmp_path, seed, Fault("straggler", 1.8, 3.2, rank, 2.0))
    assert [i.culprits[0].id for i in report.incidents] == [truth["hosts"][f"n{rank}"]]
