"""A fault after a long healthy time is found as soon and named as well as after a short one. Synthetic."""

from __future__ import annotations

import pytest

from skewscope.app import pipeline
from skewscope.core.scenario import Fault, Scenario, Workload
from skewscope.lab import synth
from tools import long_day

ONSET_S, END_S = 25.0, 28.0


@pytest.mark.slow
def test_a_straggler_after_a_long_healthy_time(tmp_path):
    fault = Fault("straggler", ONSET_S, END_S, 1, 1.6)
    truth = synth.write(Scenario("long", "faulty", 30.0, 5, Workload(own_s=0.02), (fault,)), tmp_path)
    (incident,) = pipeline.run(sorted(tmp_path.glob("*.pcap"))).incidents
    assert (incident.condition, incident.culprits[0].id) == ("c20", truth["hosts"]["n1"])
    since = [(ns - truth["first_sample_ns"]) / 1e9 for ns in (incident.onset_ns, incident.detected_ns)]
    assert since[0] == pytest.approx(ONSET_S, abs=0.1)
    assert since[1] < ONSET_S + 1.0


@pytest.mark.slow
def test_a_straggler_after_hours_with_quiet_times(tmp_path):
    """`python -m tools.long_day` is the same over a day."""
    day = long_day.run(2, tmp_path)
    ((condition, who, onset_s, found_s),) = day.told
    assert (condition, who) == ("c20", day.culprit)
    assert onset_s == pytest.approx(2 * 3600.0, abs=0.2)
    assert found_s < 2 * 3600.0 + 1.5
    assert len(day.memory_mb) > 1
