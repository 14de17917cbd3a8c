"""Counters out of the kernel's texts, and the file they become."""

import os
import time

from skewscope.lab.bed import counters
from skewscope.lab.bed.counters import Reading, Sampler
from skewscope.lab.bed.topology import builtin, parse

DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:     100       2    0    0    0     0          0         0      100       2    0    0    0     0       0          0
  eth0:    5000      40    1    2    3     4          5         6     7000      60    7    8    9    10      11         12
"""  # noqa: E501


def test_an_interface_has_bytes_packets_errors_and_drops_both_ways():
    found = {r.series: r.value for r in counters.interfaces(DEV, "eth0")}
    assert found == {
        f'node_network_{way}_{name}_total{{device="eth0"}}': value
        for way, values in (("receive", (5000, 40, 1, 2)), ("transmit", (7000, 60, 7, 8)))
        for name, value in zip(("bytes", "packets", "errs", "drop"), values, strict=True)
    }
    assert counters.interfaces(DEV, "eth1") == []
    assert counters.interfaces("", "eth0") == []


def test_throttling_has_one_name_and_one_unit_in_both_versions_of_control_groups():
    one = counters.group("nr_periods 10\nnr_throttled 4\nthrottled_time 2500000000\n", "rank-n0")
    two = counters.group("usage_usec 9\nnr_periods 10\nnr_throttled 4\nthrottled_usec 2500000\n", "rank-n0")
    assert one == two
    assert Reading('container_cpu_cfs_throttled_seconds_total{container="rank-n0"}', 2.5) in one


def test_processor_time_is_that_of_all_processes_and_nothing_where_one_is_gone():
    before = counters.processor([os.getpid()], "x")[0]
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass
    after = counters.processor([os.getpid()], "x")[0]
    assert after.series == 'container_cpu_usage_seconds_total{container="x"}'
    assert after.value - before.value >= 0.05
    assert counters.processor([os.getpid(), 1 << 30], "x") == []


def test_the_file_types_each_name_once_and_keeps_a_series_together_in_order_of_time():
    samples = {
        2_000_000_000: [Reading('b{x="1"}', 2), Reading("a", 1.5)],
        1_000_000_000: [Reading('b{x="1"}', 1), Reading('b{x="0"}', 7)],
    }
    assert counters.text(samples).splitlines() == [
        "# TYPE a counter",
        "a 1.5 2000",
        "# TYPE b counter",
        'b{x="0"} 7 1000',
        'b{x="1"} 1 1000',
        'b{x="1"} 2 2000',
    ]
    assert counters.text({}) == ""


def test_a_sampler_samples_at_its_start_and_its_end():
    class Processes:
        def children(self):
            return []

    topology = parse(builtin("tp2"), 1)
    sampler = Sampler(Processes(), topology, dict)
    sampler.start()
    sampler.stop()
    assert set(sampler.samples) == {n.name for n in topology.nodes}
    assert all(len(s) >= 1 for s in sampler.samples.values())
