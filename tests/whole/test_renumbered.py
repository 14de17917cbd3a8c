"""The same faults under other addresses, ports, file names, ranks and clocks, slower, or cut at the front.

The recordings that ship with the project are used, so this needs no samples.
"""

from pathlib import Path

import pytest

from skewscope.app.pipeline import run
from tools import recast

RECORDINGS = Path(__file__).resolve().parents[2] / "src/skewscope/app/recordings"
HOSTS = ["10.77.0.10", "10.77.0.11", "10.77.0.12", "10.77.0.13", "10.77.0.2", "10.77.0.3"]
OTHERS = ["192.168.7.201", "172.16.3.9", "10.1.255.4", "192.168.7.20", "10.200.0.77", "100.64.1.1"]
FAULTS = {
    "cpu_throttle": ("c20", "10.77.0.12"),
    "loss_uplink": ("c25", "10.77.0.12"),
    "slow_reader": ("c05", "10.77.0.3"),
}
DAY_NS = 86_400_000_000_000


def _rewritten(name, folder, addresses, **how):
    for i, source in enumerate(sorted((RECORDINGS / name).glob("*.pcap.gz"), reverse=True)):
        recast.rewritten(source, folder / f"capture{i}", addresses, **how)
    return sorted(folder.iterdir())


def _accused(report):
    first = report.incidents[0]
    return first.condition, first.culprits[0].id.removesuffix("->fabric")


@pytest.mark.slow
@pytest.mark.parametrize("turn", [0, 1, 3])
@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_is_found_under_other_addresses_ports_names_and_times(name, turn, tmp_path):
    new = dict(zip(HOSTS, OTHERS[turn:] + OTHERS[:turn], strict=True))
    report = run(_rewritten(name, tmp_path, new, shift_ns=-3 * DAY_NS))
    condition, culprit = FAULTS[name]
    assert _accused(report) == (condition, new[culprit])
    assert len(report.incidents) == 1


@pytest.mark.slow
@pytest.mark.parametrize("stretch", [0.5, 2.0])
@pytest.mark.parametrize("name", sorted(FAULTS))
def test_a_fault_is_found_at_another_rate(name, stretch, tmp_path):
    report = run(_rewritten(name, tmp_path, {}, stretch=stretch))
    assert _accused(report) == FAULTS[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cpu_throttle", "loss_uplink"])
def test_a_baseline_of_less_than_half_a_second_is_enough(name, tmp_path):
    """The faults begin 1.5 s after the first packet: what is more than 0.45 s before is cut off."""
    start = min(recast.first_ns(p) for p in (RECORDINGS / name).glob("*.pcap.gz"))
    report = run(_rewritten(name, tmp_path, {}, from_ns=start + 1_050_000_000))
    assert _accused(report) == FAULTS[name]


@pytest.mark.slow
def test_loss_that_is_there_from_the_first_packet(tmp_path):
    start = min(recast.first_ns(p) for p in (RECORDINGS / "loss_uplink").glob("*.pcap.gz"))
    report = run(_rewritten("loss_uplink", tmp_path, {}, from_ns=start + 1_600_000_000))
    assert _accused(report) == FAULTS["loss_uplink"]
