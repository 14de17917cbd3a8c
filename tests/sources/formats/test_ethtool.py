import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.core.schemas import Kind
from skewscope.sources.formats.ethtool import FORMAT
from tests.sources.formats.reading import is_told, read

TEXT = """NIC statistics:
     rx_packets: 10
     rx_prio3_pause_duration: 2000000
     outbound_pci_stalled_rd: 35
     rx0_packets: 4
     ch0_events: 3
"""


def values(found):
    return {(r["entity"], r["name"]): r["value"] for r in found.rows}


def test_text_in_canonical_units():
    assert is_told(FORMAT, TEXT)
    found = read(FORMAT, TEXT, name="n1.eth2.txt")
    assert values(found) == {
        ("n1/eth2", "eth.rx_packets"): 10.0,
        ("n1/eth2", "eth.rx_prio3_pause_s"): 2.0,
        ("n1/eth2", "pcie.stalled_read_ratio"): pytest.approx(0.35),
    }
    assert found.of("pcie.stalled_read_ratio")[0]["kind"] == Kind.PERCENT
    assert found.notes == ["2 values of single queues were passed over"]


@pytest.mark.parametrize(
    ("name", "device"),
    [
        ("ethtool_S_ens1f0.txt", "n1/ens1f0"),
        ("enp3s0-statistics", "n1/enp3s0"),
        ("n1.txt", "n1"),
        ("eth0.json", "n1/eth0"),
    ],
)
def test_the_device_is_in_the_name_of_the_file(name, device):
    assert read(FORMAT, TEXT, name=name).rows[0]["entity"] == device


def test_several_devices_in_one_file():
    text = "$ ethtool -S eth0\n" + TEXT + "$ ethtool -S eth1\n" + TEXT
    assert is_told(FORMAT, text)
    assert {r["entity"] for r in read(FORMAT, text).rows} == {"n1/eth0", "n1/eth1"}


@pytest.mark.parametrize("many", [True, False])
def test_json(many):
    device = {"ifname": "eth0", "statistics": {"rx_packets": 10, "tx_discards_phy": 2, "on": True}}
    text = json.dumps([device] if many else device)
    assert is_told(FORMAT, text)
    assert values(read(FORMAT, text)) == {
        ("n1/eth0", "eth.rx_packets"): 10.0,
        ("n1/eth0", "eth.tx_discards_phy"): 2.0,
    }


@settings(deadline=None)
@given(st.binary(max_size=80))
def test_any_bytes_are_taken(data):
    for begin in (b"NIC statistics:\n     ", b'[{"ifname": "eth0", ', b'{"rx_bytes": 1, '):
        read(FORMAT, begin + data)
