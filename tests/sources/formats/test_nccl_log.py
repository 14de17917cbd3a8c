import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.sources.formats.nccl_log import FORMAT, bus_name, version_code
from tests.sources.formats.reading import AT_NS, is_told, read, read_sample, samples

INFO = "w0:10:11 [3] NCCL INFO "


@pytest.mark.parametrize(
    ("text", "kind", "code", "peer", "said"),
    [
        ("NCCL version 2.27.5+cuda12.4", "nccl.version", 22705, "", {}),
        (
            INFO + "Channel 01/0 : 2[2] -> 3[3] [send] via NET/IB/0/GDRDMA",
            "nccl.channel",
            1,
            "rank:3",
            {"rank": 2, "via": "NET/IB/0/GDRDMA", "way": "send"},
        ),
        (INFO + "Ring 04 : 7 -> 0 -> 1", "nccl.ring", 4, "rank:1", {"previous": 7, "rank": 0}),
        (INFO + "Tree 1 : -1 -> 0 -> 1/-1/-1", "nccl.tree", 1, "", {"children": "1/-1/-1"}),
        (
            INFO + "AllReduce: opCount 1f sendbuff 0x1 recvbuff 0x2 count 2 datatype 7 op 0 root 0 comm 0x3"
            " [nranks=2] stream 0x4",
            "nccl.collective",
            31,
            "",
            {"operation": "AllReduce", "count": 2},
        ),
        (
            INFO + "AllReduce: 33554432 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..31}",
            "nccl.collective",
            0,
            "",
            {"bytes": 33554432, "algorithm": "RING", "protocol": "SIMPLE"},
        ),
        (INFO + "transport/net.cc:1302 -> 6", "nccl.error", 6, "", {"place": "transport/net.cc:1302"}),
        (
            INFO + "comm 0x1 rank 3 nranks 4 cudaDev 3 busId 9b000 - Destroy COMPLETE",
            "nccl.destroy",
            3,
            "0x1",
            {"nranks": 4},
        ),
        (
            "[2026-05-05 06:16:47] w0:10:11 [3] ib.cc:9 NCCL WARN Failed",
            "nccl.warning",
            0,
            "",
            {"text": "Failed", "place": "ib.cc:9"},
        ),
        (
            (
                "w0:10:11 [4] NCCL WARN NET/IB : Got completion from peer 10.0.0.2<5> with"
                " status=RETRY_EXC_ERR(12) opcode=SEND(0) vendor_err=129 localGid x hca mlx5_2"
            ),
            "nccl.completion_error",
            12,
            "10.0.0.2<5>",
            {"status": "RETRY_EXC_ERR", "vendor_err": 129, "hca": "mlx5_2"},
        ),
        (
            (
                "w0:10:11 [4] NCCL WARN NET/IB : Got completion from peer 10.0.0.2<5> with status=13 opcode=0"
                " len=0 vendor err 135 (Send)"
            ),
            "nccl.completion_error",
            13,
            "10.0.0.2<5>",
            {"status": "RNR_RETRY_EXC_ERR", "vendor_err": 135, "side": "send"},
        ),
    ],
)
def test_lines_that_are_kept(text, kind, code, peer, said):
    (row,) = read(FORMAT, text + "\n").rows
    assert (row["kind"], row["code"], row["peer"]) == (kind, code, peer)
    assert said.items() <= row["fields"].items()


def test_a_process_is_the_gpu_that_its_init_names():
    text = (
        INFO
        + "Using network IB\n"
        + INFO
        + "comm 0x1 rank 5 nranks 8 cudaDev 0 nvmlDev 6 busId cb000 commId 0xabc - Init COMPLETE\n"
        + INFO
        + "Ring 00 : 4 -> 5 -> 6\n"
    )
    found = read(FORMAT, text, host="")
    assert is_told(FORMAT, text)
    assert [r["entity"] for r in found.rows] == ["w0/gpu3", "w0/gpu6", "w0/gpu3", "w0/gpu6"]
    identity = found.of("gpu.identity")[0]
    assert (identity["peer"], identity["code"]) == ("w0/pci 0000:cb:00.0", 6)
    assert found.of("nccl.init")[0]["peer"] == "0xabc"


def test_lines_of_an_engine_around_them_are_passed_over():
    text = f"INFO 08-20 engine starts\n(Worker pid=7) {INFO}Using network Socket\nTraceback: x\n"
    found = read(FORMAT, text)
    assert [r["fields"]["network"] for r in found.rows] == ["Socket"]


def test_a_line_without_a_time_gets_that_of_the_one_before():
    text = (
        f"{INFO}Using network IB\n[2026-05-05 06:16:47] w0:1:1 [0] a.cc:1 NCCL WARN x\n{INFO}Using network"
        " IB\n"
    )
    found = read(FORMAT, text)
    assert found.rows[0]["ts_ns"] == AT_NS
    assert found.rows[1]["ts_ns"] == found.rows[2]["ts_ns"] == 1_777_961_807 * 10**9
    assert any(note.startswith("2 events have no time") for note in found.notes)


def test_numbers_of_nccl():
    assert version_code("2.27.5+cuda12.4") == 22705
    assert version_code("x") == 0
    assert bus_name("9b000") == "pci 0000:9b:00.0"
    assert bus_name("10009b0a1") == "pci 1000:9b:0a.1"
    assert bus_name("XXXX") == ""


@settings(deadline=None)
@given(st.text(max_size=100))
def test_any_text_is_taken(text):
    read(FORMAT, INFO + text)
    read(FORMAT, "w0:1:1 [0] NCCL WARN NET/IB : Got completion from peer " + text)


@samples
def test_recorded_logs():
    errors = read_sample(FORMAT, "nccl/nccl_ib_completion_error_lines.log", host="")
    failed = errors.of("nccl.completion_error")
    assert [(r["code"], r["fields"]["vendor_err"], r["peer"]) for r in failed] == [
        (12, 129, "198.51.100.36<54862>")
    ] * 2
    assert errors.of("gpu.identity")[0]["peer"] == "hostname-test/pci 0000:9b:00.0"
    excerpts = read_sample(FORMAT, "nccl/nccl_debug_log_excerpts.log", host="")
    kinds = {r["kind"] for r in excerpts.rows}
    assert {
        "nccl.warning",
        "nccl.ring",
        "nccl.tree",
        "nccl.channel",
        "nccl.collective",
        "nccl.timing",
    } <= kinds
    assert excerpts.of("nccl.timing")[0]["fields"]["total_s"] == 0.37
