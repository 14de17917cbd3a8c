"""Groups whose bytes cannot be read (encrypted, unknown): rhythm alone must do. Synthetic captures."""

from __future__ import annotations

import pytest

from skewscope.app import pipeline
from skewscope.core.scenario import Fault, Scenario, Workload
from skewscope.lab import synth

OPAQUE = Workload(framing="opaque")


def told(folder, seed, *faults):
    """Return (truth, [(condition, first culprit)]) of a run with unreadable bytes."""
    truth = synth.write(Scenario("opaque", "faulty", 4.0, seed, OPAQUE, faults), folder)
    report = pipeline.run(sorted(folder.glob("*.pcap")))
    assert report.groups, "a group is recovered from bursts"
    return truth, [(i.condition, i.culprits[0].id) for i in report.incidents]


@pytest.mark.parametrize("seed", [7, 2002])
def test_a_healthy_group_stays_silent(tmp_path, seed):
    assert told(tmp_path, seed)[1] == []


@pytest.mark.parametrize("seed", [7, 2002])
def test_a_straggler_is_found(tmp_path, seed):
    truth, found = told(tmp_path, seed, Fault("straggler", 1.8, 3.2, 1, 2.0))
    assert found == [("c20", truth["hosts"]["n1"])]
