import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.core.schemas import Kind, Side
from skewscope.sources.formats.sysfs import FORMAT
from tests.sources.formats.reading import AT_NS, is_told, read, read_sample, samples


def values(text, **more):
    return {(r["entity"], r["name"]): r["value"] for r in read(FORMAT, text, **more).rows if "name" in r}


@pytest.mark.parametrize("prefix", ["", "/sys/class/infiniband/", "host/sys/class/infiniband/"])
@pytest.mark.parametrize("to", [": ", ":", "\t", "="])
def test_every_way_to_write_a_tree(prefix, to):
    text = f"{prefix}mlx5_0/ports/1/hw_counters/packet_seq_err{to}7\n"
    assert is_told(FORMAT, text)
    assert values(text) == {("n1/mlx5_0/1", "rdma.packet_seq_err"): 7.0}


def test_words_become_bytes_and_texts_numbers():
    text = (
        "mlx5_0/ports/1/counters/port_rcv_data: 10\nmlx5_0/ports/1/rate: 400 Gb/sec (4X NDR)\n"
        "mlx5_0/ports/1/state: 4: ACTIVE\nmlx5_0/ports/1/link_layer: Ethernet\n"
    )
    assert values(text) == {
        ("n1/mlx5_0/1", "port.rcv_bytes"): 40.0,
        ("n1/mlx5_0/1", "port.rate_bps"): 4e11,
        ("n1/mlx5_0/1", "port.state"): 4.0,
    }


def test_width_and_side_come_from_the_name_table():
    (row,) = read(FORMAT, "mlx5_0/ports/1/hw_counters/local_ack_timeout_err: 1\n").rows
    assert (row["kind"], row["side"]) == (Kind.COUNTER32, Side.REQUESTER)


def test_network_devices_and_a_link_that_is_down():
    device = "/sys/class/net/eth0"
    text = f"{device}/statistics/rx_bytes:9\n{device}/speed:-1\n{device}/mtu:4200\n"
    found = values(text)
    assert found["n1/eth0", "eth.rx_bytes"] == 9.0
    assert math.isnan(found["n1/eth0", "eth.speed_bps"])
    assert found["n1/eth0", "eth.mtu_bytes"] == 4200.0


def test_pcie_links_errors_and_gpus():
    gpu = "/sys/bus/pci/devices/0000:9b:00.0/"
    text = (
        f"{gpu}vendor:0x10de\n{gpu}class:0x030200\n{gpu}current_link_speed:16.0 GT/s PCIe\n"
        f"{gpu}max_link_width:16\n{gpu}aer_dev_correctable:RxErr"
        f" 3\n{gpu}aer_dev_correctable:TOTAL_ERR_COR 4\n"
        "/sys/bus/pci/devices/0000:19:00.0/vendor:0x10de\n/sys/bus/pci/devices/0000:19:00.0/class:0x030200\n"
    )
    assert is_told(FORMAT, text)
    found = read(FORMAT, text)
    where = "n1/pci 0000:9b:00.0"
    assert {(r["entity"], r["name"]): r["value"] for r in found.rows if "name" in r} == {
        (where, "pcie.link_transfers_per_s"): 16e9,
        (where, "pcie.max_link_width"): 16.0,
        (where, "pcie.aer_cor_rx_err"): 3.0,
        (where, "pcie.aer_cor_total"): 4.0,
    }
    assert [(r["entity"], r["peer"]) for r in found.of("gpu.identity")] == [
        ("n1/gpu0", "n1/pci 0000:19:00.0"),
        ("n1/gpu1", where),
    ]


def test_counts_without_the_path_belong_to_the_file_above():
    text = "/sys/bus/pci/devices/0000:9b:00.0/aer_dev_fatal: Undefined 0\nDLP 2\nTOTAL_ERR_FATAL 2\n"
    assert values(text)["n1/pci 0000:9b:00.0", "pcie.aer_fatal_total"] == 2.0


def test_later_readings_of_the_same_files():
    text = (
        "mlx5_0/ports/1/counters/port_rcv_packets: 1\n# time"
        " 1700000001.5\nmlx5_0/ports/1/counters/port_rcv_packets: 5\n"
    )
    assert [(r["ts_ns"] - AT_NS, r["value"]) for r in read(FORMAT, text).rows] == [
        (0, 1.0),
        (1_500_000_000, 5.0),
    ]


def test_names_outside_the_table_are_counted():
    found = read(FORMAT, "mlx5_0/ports/1/hw_counters/new_counter: 1\nmlx5_0/node_guid: 0a7f\n")
    assert found.rows == []
    assert found.unmapped == {"new_counter": 1}
    assert found.notes == ["1 lines are of files that are not read"]


@settings(deadline=None)
@given(st.text(max_size=60), st.text(max_size=30))
def test_any_name_and_value_is_taken(name, value):
    read(
        FORMAT,
        f"mlx5_0/ports/1/counters/{name}:"
        f" {value}\n/sys/bus/pci/devices/0000:9b:00.0/aer_dev_fatal:{value}\n{name}",
    )


@samples
def test_recorded_trees():
    h100 = read_sample(FORMAT, "counters/sys_class_infiniband_h100_cx7.txt")
    at = {(r["entity"], r["name"]): r for r in h100.rows}
    assert len({r["entity"] for r in h100.rows}) == 9
    assert at["n1/mlx5_0/1", "port.rcv_bytes"]["value"] == 4 * 230539874932483
    assert (
        at["n1/mlx5_1/1", "port.link_downed"]["value"]
        == at["n1/mlx5_1/1", "port.link_downed"]["ceiling"]
        == 255
    )
    assert at["n1/mlx5_0/1", "port.rate_bps"]["value"] == 4e11
    old = read_sample(FORMAT, "counters/sys_class_infiniband_procfs_fixture.txt")
    at = {(r["entity"], r["name"]): r["value"] for r in old.rows}
    assert at["n1/mlx5_0/1", "rdma.resp_cqe_error"] == 8109
    assert at["n1/mlx5_0/1", "rdma.lifespan_s"] == pytest.approx(0.01)
    aer = read_sample(FORMAT, "counters/aer_dev_files_example.txt")
    assert {r["name"]: r["value"] for r in aer.rows}["pcie.aer_cor_total"] == 2
    assert aer.unmapped == {}
