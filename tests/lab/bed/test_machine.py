"""Machine use: readings, and when a run must not be published."""

import os

from skewscope.lab.bed import machine


def reading(at_s, busy=0.0, stolen=0.0, used=0.0, drops=0, waits=None):
    return machine.Sample(at_s, busy, stolen, 0.0, used, drops), waits or {}


def test_a_quiet_run_has_no_objections():
    cores = os.cpu_count() or 1
    found = machine.use(
        reading(0, waits={1: 0.0}), reading(10, busy=5.0 * cores, used=2.0 * cores, waits={1: 0.1})
    )
    assert found.busy_ratio == 0.5
    assert found.bed_ratio == 0.2
    assert found.waited_ratio == 0.01
    assert not found.objections()


def test_each_loss_is_an_objection():
    cores = os.cpu_count() or 1
    found = machine.use(
        reading(0, waits={1: 0.0, 2: 0.0}),
        reading(10, stolen=1.0 * cores, drops=3, waits={1: 2.0, 3: 50.0}),
    )
    words = " ".join(found.objections())
    assert "the host took 10.0%" in words
    assert "waited for a core 20.0%" in words
    assert "dropped 3 frames" in words


def test_this_process_can_be_sampled_and_a_missing_one_is_left_out():
    sample, waits = machine.sample([os.getpid(), 2**22 + 1])
    assert sample.used_s > 0
    assert sample.busy_s > 0
    assert waits[os.getpid()] >= 0
