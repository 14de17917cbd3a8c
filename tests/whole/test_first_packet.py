"""Faults that are there from the first packet are told by comparing peers. Synthetic."""

from __future__ import annotations

import pytest

from skewscope.app import pipeline
from skewscope.core.scenario import Fault, Scenario, Workload
from skewscope.lab import synth
from tests.whole.recorded import NEEDED, ROOT, WHY
from tools import score_baseline

PAIRS = Workload(ranks=2, replicas=2, own_s=0.008, answer_tokens=12, clients=8, slots=8)
BEFORE_S, END_S = -1.0, 4.0
FAULTS = {
    "quota": (Workload(), Fault("straggler", BEFORE_S, END_S, 2, 2.5, share=0.3), {"c20"}),
    "full port": (Workload(), Fault("cross_traffic", BEFORE_S, END_S, 2, 2e7, where="deep"), {"c09", "c23"}),
    "slow port": (Workload(), Fault("rate_limit", BEFORE_S, END_S, 2, 3e6), {"c23", "c09"}),
    "longer path": (Workload(), Fault("delay", BEFORE_S, END_S, 2, 0.003), {"c23"}),
    "loss": (Workload(), Fault("loss", BEFORE_S, END_S, 2, 0.02), {"c25"}),
    "uneven routing": (PAIRS, Fault("uneven_routing", BEFORE_S, END_S, strength=12.0), {"c03"}),
}
HEALTHY = {
    "a fixed order of entry": (Workload(), (Fault("straggler", BEFORE_S, END_S, 2, 1.2),)),
    "accelerators that differ": (Workload(own_spread=0.15), ()),
    "a fast group": (Workload(own_s=0.003, own_spread=0.2), ()),
    "two replicas": (PAIRS, ()),
}


def diagnosed(workload, faults, folder):
    truth = synth.write(Scenario("first", "faulty", END_S, 7, workload, faults), folder)
    return pipeline.run(sorted(folder.glob("*.pcap"))), truth


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FAULTS))
def test_it_is_found_and_dated_to_the_first_samples(name, tmp_path):
    workload, fault, conditions = FAULTS[name]
    report, truth = diagnosed(workload, (fault,), tmp_path)
    first = report.incidents[0]
    assert first.condition in conditions
    assert truth["fault"][0]["culprit"]["id"] in first.culprits[0].id
    assert (first.onset_ns - truth["first_sample_ns"]) / 1e9 < 0.6


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(HEALTHY))
def test_what_is_ordinary_from_the_first_packet_on_stays_silent(name, tmp_path):
    report, _ = diagnosed(*HEALTHY[name], tmp_path)
    assert report.incidents == []


@pytest.mark.samples
@pytest.mark.skipif(NEEDED, reason=WHY)
@pytest.mark.parametrize("baseline_s", [-0.05, 0.4])
@pytest.mark.parametrize("name", ["bufferbloat", "cpu_throttle", "link_flap", "uneven_routing"])
def test_a_recorded_fault_is_explained_with_little_or_nothing_before_it(name, baseline_s):
    said, right, _ = score_baseline.judged(ROOT, name, baseline_s)
    assert right, said
