"""Machine use: readings, and when a run must not be published."""

import os

from skewscope.lab.bed import machine

CORES = os.cpu_count() or 1


def reading(at_s, busy=0.0, stolen=0.0, drops=0, processes=None):
    return machine.Sample(at_s, busy * CORES, stolen * CORES, drops, processes or {})


def test_a_quiet_run_has_no_objections():
    found = machine.use(
        reading(0, processes={1: (0.0, 0.0)}), reading(10, busy=5.0, processes={1: (2.0 * CORES, 0.1)})
    )
    assert found.busy_ratio == 0.5
    assert found.bed_ratio == 0.2
    assert found.waited_ratio == 0.01
    assert not found.objections()


def test_each_loss_is_an_objection():
    found = machine.use(
        reading(0, processes={1: (0.0, 0.0), 2: (0.0, 0.0), 4: (9.0, 9.0)}),
        reading(10, stolen=1.0, drops=3, processes={1: (0.0, 2.0), 3: (50.0, 50.0), 4: (0.0, 0.0)}),
    )
    words = " ".join(found.objections())
    assert "the host took 10.0%" in words
    assert "waited for a core 20.0%" in words
    assert "dropped 3 frames" in words
    assert found.bed_ratio == 0


def test_a_busy_bed_waits_for_itself():
    start = reading(0, processes={1: (0.0, 0.0)})
    assert machine.use(start, reading(10, processes={1: (0.0, 1.0)})).objections()
    assert not machine.use(start, reading(10, processes={1: (4.0 * CORES, 1.0)})).objections()


def test_this_process_can_be_sampled_and_a_missing_one_reads_as_zero():
    found = machine.sample([os.getpid(), 2**22 + 1])
    assert found.busy_s > 0
    assert found.processes[os.getpid()][0] > 0
    assert found.processes[2**22 + 1] == (0.0, 0.0)
