from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.sources.formats.lspci import FORMAT
from tests.sources.formats.reading import is_told, read, read_sample, samples

GPU = """19:00.0 3D controller: NVIDIA Corporation Device 2330 (rev a1)
\tSubsystem: NVIDIA Corporation Device 16c1
\tNUMA node: 1
\t\tDevSta:\tCorrErr+ NonFatalErr- FatalErr- UnsupReq- AuxPwr+ TransPend+
\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM L1, Exit Latency L1 <4us
\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width x8 (downgraded)
\t\tCESta:\tRxErr+ BadTLP- BadDLLP- Rollover- Timeout+ AdvNonFatalErr-
\tKernel driver in use: nvidia
"""


def test_capability_against_status():
    assert is_told(FORMAT, GPU)
    found = read(FORMAT, GPU)
    assert {r["name"]: r["value"] for r in found.rows if "name" in r} == {
        "pcie.numa_node": 1.0,
        "pcie.max_link_transfers_per_s": 32e9,
        "pcie.max_link_width": 16.0,
        "pcie.link_transfers_per_s": 2.5e9,
        "pcie.link_width": 8.0,
    }
    assert {r["entity"] for r in found.rows if "name" in r} == {"n1/pci 0000:19:00.0"}
    assert any("1 links are below" in note for note in found.notes)


def test_error_bits_are_sticky_and_no_error():
    (row,) = read(FORMAT, GPU).of("pcie.sticky")
    assert row["code"] == 3
    assert row["fields"]["CESta"] == "RxErr Timeout"
    assert row["fields"]["DevSta"] == "CorrErr"
    assert read(FORMAT, GPU).of("pcie.aer") == []


def test_gpus_are_numbered_in_the_order_of_the_bus():
    text = GPU + "\n" + GPU.replace("19:00.0", "0001:3b:00.0")
    assert [(r["entity"], r["peer"]) for r in read(FORMAT, text).of("gpu.identity")] == [
        ("n1/gpu0", "n1/pci 0000:19:00.0"),
        ("n1/gpu1", "n1/pci 0001:3b:00.0"),
    ]


def test_a_listing_without_rights_says_so():
    text = (
        "19:00.0 3D controller: NVIDIA Corporation Device 2330\n\tFlags: bus master\n\tCapabilities: <access"
        " denied>\n"
    )
    assert any("not run as root" in note for note in read(FORMAT, text).notes)


@settings(deadline=None)
@given(st.lists(st.sampled_from(GPU.splitlines()) | st.text(max_size=60), max_size=12))
def test_any_lines_are_taken(parts):
    read(FORMAT, "\n".join(parts))


@samples
def test_a_healthy_host_has_sticky_bits_on_every_gpu_and_no_slow_gpu_link():
    found = read_sample(FORMAT, "counters/lspci_vvv_8xh100_cx7.txt.gz")
    gpus = {r["peer"]: r["entity"] for r in found.of("gpu.identity")}
    assert len(gpus) == 8
    assert gpus["n1/pci 0000:9b:00.0"] == "n1/gpu4"
    sticky = {r["entity"] for r in found.of("pcie.sticky")}
    assert gpus.keys() <= sticky
    links = Counter(
        (r["name"], r["value"])
        for r in found.rows
        if r["entity"] in gpus and r.get("name", "").startswith("pcie.link")
    )
    assert links == {("pcie.link_transfers_per_s", 32e9): 8, ("pcie.link_width", 16.0): 8}
