import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.sources.formats.kernel_log import FORMAT, pci_name
from tests.sources.formats.reading import AT_NS, SECOND, is_told, read, read_sample, samples

ISO = "2025-01-21T04:41:44,000000+00:00 "


def one(message: str) -> dict:
    found = read(FORMAT, f"kern  :warn  : {ISO}{message}\n")
    assert len(found.rows) == 1, found.rows
    return found.rows[0]


@pytest.mark.parametrize(
    ("message", "kind", "entity", "code", "said"),
    [
        (
            "NVRM: Xid (PCI:0000:91:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            "gpu.xid",
            "n1/pci 0000:91:00.0",
            79,
            {"text": "pid='<unknown>', name=<unknown>, GPU has fallen off the bus."},
        ),
        (
            "nvidia-nvswitch1: SXid (PCI:0000:06:00.0): 20034, Fatal, Link 48 LTSSM Fault Up",
            "nvswitch.sxid",
            "n1/pci 0000:06:00.0",
            20034,
            {"link": 48, "severity": "fatal", "switch": 1},
        ),
        (
            "Out of memory: Killed process 123 (python3) total-vm:1kB",
            "process.oom_kill",
            "n1",
            123,
            {"process": "python3"},
        ),
        (
            "INFO: task nvidia-smi:4711 blocked for more than 122 seconds.",
            "kernel.hung_task",
            "n1",
            4711,
            {"process": "nvidia-smi", "seconds": "122"},
        ),
        (
            "watchdog: BUG: soft lockup - CPU#7 stuck for 26s! [python3:99]",
            "kernel.soft_lockup",
            "n1",
            7,
            {"seconds": "26"},
        ),
        (
            "pcieport 0000:16:01.0: AER: Corrected error received: 0000:17:00.0",
            "pcie.aer",
            "n1/pci 0000:17:00.0",
            0,
            {},
        ),
        (
            "nvidia 0000:17:00.0: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)",
            "pcie.aer",
            "n1/pci 0000:17:00.0",
            0,
            {"layer": "Physical Layer"},
        ),
        (
            "nvidia 0000:17:00.0: AER: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer",
            "pcie.aer",
            "n1/pci 0000:17:00.0",
            2,
            {"layer": "Transaction Layer"},
        ),
        ("mlx5_core 0000:1a:00.0 eth2: Link down", "link.down", "n1/eth2", 0, {}),
        ("mlx5_core 0000:1a:00.0 eth2: Link up", "link.up", "n1/eth2", 0, {}),
        (
            "ixgbe 0000:01:00.0 eno1: NIC Link is Up 10 Gbps, Flow Control: None",
            "link.up",
            "n1/eno1",
            10_000,
            {},
        ),
        (
            (
                "mlx5_core 0000:1a:00.0: mlx5_cmd_out_err:808:(pid 1): CREATE_MKEY(0x200) failed, syndrome"
                " (0x38c711), err(-12)"
            ),
            "nic.error",
            "n1/pci 0000:1a:00.0",
            0x38C711,
            {},
        ),
        (
            "CPU12: Core temperature above threshold, cpu clock throttled (total events = 3)",
            "kernel.throttle",
            "n1",
            12,
            {},
        ),
        ("EDAC MC0: 2 CE memory read error on CPU_SrcID#0", "memory.error", "n1/MC0", 2, {"sort": "CE"}),
    ],
)
def test_messages_that_tell_of_faults(message, kind, entity, code, said):
    row = one(message)
    assert (row["kind"], row["entity"], row["code"]) == (kind, entity, code)
    assert said.items() <= row["fields"].items()
    assert row["ts_ns"] == 1_737_434_504 * SECOND


def test_who_reported_an_error_is_the_peer():
    row = one("pcieport 0000:16:01.0: AER: Multiple Uncorrected (Non-Fatal) error received: 0000:17:00.0")
    assert (row["peer"], row["code"]) == ("n1/pci 0000:16:01.0", 1)


def test_normal_messages_are_no_events():
    text = (
        f"kern  :info  : {ISO}usb 1-1: new high-speed USB device\nkern  :info  : {ISO}NVRM: loading NVIDIA"
        " UNIX\n"
    )
    assert read(FORMAT, text).rows == []


def test_a_gpu_is_named_by_its_number_once_the_driver_said_it():
    xid = "[Sun Feb 23 16:24:1{} 2025] NVRM: Xid (PCI:0000:9b:00): {}\n"
    found = read(
        FORMAT, xid.format(8, "119, pid=1, name=a, RPC response from GPU4 GSP!") + xid.format(9, "31, x")
    )
    assert [(r["kind"], r["entity"]) for r in found.rows] == [
        ("gpu.identity", "n1/gpu4"),
        ("gpu.xid", "n1/gpu4"),
        ("gpu.xid", "n1/gpu4"),
    ]
    assert found.rows[0]["peer"] == "n1/pci 0000:9b:00.0"
    assert "without a zone" in found.notes[0]


def test_times_since_boot_end_at_the_time_of_the_file():
    text = "[  100.000000] NVRM: Xid (PCI:0000:91:00): 79, a\n[  160.500000] usb: normal\n"
    found = read(FORMAT, text)
    assert found.rows[0]["ts_ns"] == AT_NS - 60_500_000_000
    assert "since boot" in found.notes[0]


def test_the_real_time_clock_in_the_log_places_all_times():
    text = (
        "[    0.500000] NVRM: Xid (PCI:0000:91:00): 1, a\n"
        "[    2.000000] rtc_cmos 00:01: setting system clock to 2025-02-23T16:24:18 UTC (1740327858)\n"
        "[  100.000000] NVRM: Xid (PCI:0000:91:00): 2, a\n"
    )
    found = read(FORMAT, text)
    assert [r["ts_ns"] - 1_740_327_856 * SECOND for r in found.rows] == [500_000_000, 100 * SECOND]
    assert found.notes == []


@pytest.mark.parametrize(
    "line",
    [
        "Feb 23 16:24:18 worker kernel: NVRM: Xid (PCI:0000:91:00): 79, a",
        "2025-02-23T16:24:18.000000+00:00 worker kernel: [  99.000001] NVRM: Xid (PCI:0000:91:00): 79, a",
        json.dumps(
            {
                "__REALTIME_TIMESTAMP": "1740327858000000",
                "_HOSTNAME": "worker",
                "MESSAGE": "NVRM: Xid (PCI:0000:91:00): 79, a",
            }
        ),
    ],
)
def test_the_journal_names_the_host(line):
    found = read(FORMAT, line + "\n", name="messages", host="")
    assert is_told(FORMAT, line + "\n", "messages")
    assert found.rows[0]["entity"] == "worker/pci 0000:91:00.0"


def test_pci_addresses_have_one_form():
    assert pci_name("9B:00") == pci_name("0000:9b:00") == pci_name("00000000:9b:00.0") == "0000:9b:00.0"


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(st.text(max_size=80), st.just("NVRM: Xid (PCI:"), st.just("[ 1.000000] SXid ")), max_size=20
    )
)
def test_any_text_is_taken(parts):
    read(FORMAT, "\n".join(parts))


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_taken(data):
    read(FORMAT, data)
    FORMAT.sure(data, "x")


@samples
def test_recorded_kernel_messages():
    fell_off = read_sample(FORMAT, "kmsg/dmesg_xid_79_sxid_20034.log")
    assert [(r["kind"], r["code"]) for r in fell_off.rows] == [("gpu.xid", 79)] + [
        ("nvswitch.sxid", 20034)
    ] * 8
    gaps = [
        (b["ts_ns"] - a["ts_ns"]) / SECOND for a, b in zip(fell_off.rows, fell_off.rows[1:], strict=False)
    ]
    assert gaps[0] == pytest.approx(11.851805)
    timeout = read_sample(FORMAT, "kmsg/dmesg_xid_119_gsp_timeout.log")
    assert [r["entity"] for r in timeout.of("gpu.xid")] == ["n1/gpu4"] * 5
    assert {r["code"] for r in timeout.of("gpu.xid")} == {119}
    peermem = read_sample(FORMAT, "kmsg/kmsg_nvidia_peermem_invalid_context.log")
    assert len(peermem.of("peermem.error")) == 7
    segfault = read_sample(FORMAT, "kmsg/dmesg_nccl_segfault.log")
    assert [r["fields"]["library"] for r in segfault.of("process.segfault")] == ["libnccl.so.2"] * 2
