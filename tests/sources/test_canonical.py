import math
import os
from pathlib import Path

import pytest

from skewscope.core.schemas import Kind, Side
from skewscope.sources import canonical as module
from skewscope.sources.canonical import (
    NameTableError,
    canonical,
    exposed,
    names,
    products,
    read_names,
    read_product,
    spread,
)


def test_every_name_has_a_unit_a_kind_and_a_meaning():
    assert len(names()) > 250
    for name in names().values():
        assert name.unit in module.UNITS, name
        assert name.doc, name
        assert name.name.count(".") == 1


def test_units_that_a_name_ends_in_are_its_units():
    ends = {"_s": "s", "_bytes": "bytes", "_ratio": "ratio", "_bps": "bit/s", "_packets": "packets"}
    for name in names().values():
        for end, unit in ends.items():
            if name.name.endswith(end) and not name.name.endswith("_per_s"):
                assert name.unit == unit, name


def test_a_share_is_a_percent_or_a_gauge_and_never_counts():
    for name in names().values():
        if name.unit == "ratio":
            assert name.kind in (Kind.PERCENT, Kind.GAUGE, Kind.BUCKET), name


def test_every_product_is_read():
    assert {"sysfs_infiniband", "sysfs_net", "sysfs_pci", "ethtool"} <= set(products())
    for product in products().values():
        assert product.aliases
        assert product.doc


def test_exposed_names_belong_to_one_product():
    assert exposed("no such name") is None


def test_what_an_alias_says():
    found = canonical("sysfs_infiniband", "packet_seq_err")
    assert found is not None
    assert (found.name, found.unit, found.kind, found.side, found.table) == (
        "rdma.packet_seq_err",
        "packets",
        Kind.COUNTER32,
        Side.REQUESTER,
        "counters",
    )
    words = canonical("sysfs_infiniband", "port_rcv_data")
    assert words is not None
    assert (words.name, words.value(3)) == ("port.rcv_bytes", 12.0)
    pause = canonical("ethtool", "rx_prio3_pause_duration")
    assert pause is not None
    assert (pause.name, pause.value(2_000_000)) == ("eth.rx_prio3_pause_s", 2.0)
    stall = canonical("ethtool", "outbound_pci_stalled_rd")
    assert stall is not None
    assert (stall.kind, stall.value(42)) == (Kind.PERCENT, pytest.approx(0.42))
    speed = canonical("sysfs_net", "speed")
    assert speed is not None
    assert math.isnan(speed.value(-1))
    assert canonical("ethtool", "made_up") is None
    downed = canonical("sysfs_infiniband", "link_downed")
    assert downed is not None
    assert downed.ceiling == 255


def test_aer_errors_have_a_name_for_each_severity():
    for severity in ("nonfatal", "fatal"):
        found = canonical("sysfs_pci", f"aer_dev_{severity}/CmpltTO")
        assert found is not None
        assert found.name == f"pcie.aer_{severity}_completion_timeout"


def test_spread():
    assert spread("a{0..2}b") == ["a0b", "a1b", "a2b"]
    assert spread("a{x,yz}") == ["ax", "ayz"]
    assert spread("ab") == ["ab"]


GOOD = 'area = "x"\ntable = "counters"\n[names]\na = { unit = "s", kind = "gauge", doc = "d" }\n'


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"s"', '"fortnights"', "unit"),
        ('"gauge"', '"guess"', "kind"),
        ('"counters"', '"chairs"', "table"),
        ('doc = "d"', 'doc = ""', "doc"),
        ('doc = "d"', 'side = "left", doc = "d"', "side"),
    ],
)
def test_a_name_that_says_nonsense_is_refused(tmp_path, old, new, why):
    file = tmp_path / "x.toml"
    file.write_text(GOOD)
    assert [n.name for n in read_names(file)] == ["x.a"]
    file.write_text(GOOD.replace(old, new))
    with pytest.raises(NameTableError, match=why):
        list(read_names(file))


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ('[alias]\nb = "x.none"', "no canonical name"),
        ('[alias]\nb = "x.a"\n[unmapped]\n"why" = ["b"]', "given twice"),
        ('[[same]]\narea = "x"\nnames = ["a"]\n[alias]\na = "x.a"', "given twice"),
        ('[alias]\n"b{0..2}" = "x.{0..1}"', "differ in number"),
    ],
)
def test_a_product_that_says_nonsense_is_refused(tmp_path, body, why):
    names_file, file = tmp_path / "x.toml", tmp_path / "p.toml"
    names_file.write_text(GOOD)
    known = {n.name: n for n in read_names(names_file)}
    file.write_text(f'product = "p"\ndoc = "d"\n{body}\n')
    with pytest.raises(NameTableError, match=why):
        read_product(file, known)


def test_every_name_that_netq_accepts_is_mapped_or_left_out_on_purpose():
    file = Path(os.environ.get("SKEWSCOPE_SAMPLES", "")) / "counters/netq_default_otlp_metric_names.txt"
    if not file.exists():
        pytest.skip("SKEWSCOPE_SAMPLES names no folder with recorded samples")
    listed = [n for n in file.read_text().splitlines() if n and not n.startswith("#")]
    product = products()["dts"]
    assert len(listed) == 169
    assert [n for n in listed if canonical("dts", n) is None and n not in product.unmapped] == []
    assert sum(n in product.aliases for n in listed) == 151


@pytest.mark.parametrize(
    ("fact", "spellings"),
    [
        (
            "rdma.packet_seq_err",
            [
                ("sysfs_infiniband", "packet_seq_err"),
                ("dts", "hw_packet_seq_err"),
                ("node_exporter", "node_infiniband_packet_sequence_errors_total"),
            ],
        ),
        (
            "eth.rx_prio3_pause_s",
            [
                ("ethtool", "rx_prio3_pause_duration"),
                ("dts", "rx_prio3_pause_duration"),
                ("node_exporter", "node_ethtool_received_prio3_pause_duration"),
            ],
        ),
        (
            "engine.kv_usage_ratio",
            [
                ("vllm", "vllm:kv_cache_usage_perc"),
                ("vllm", "vllm:gpu_cache_usage_perc"),
                ("sglang", "sglang:token_usage"),
                ("trtllm", "trtllm_kv_cache_utilization"),
                ("dynamo", "kvstats_gpu_cache_usage_percent"),
            ],
        ),
        (
            "engine.itl_s",
            [
                ("vllm", "vllm:inter_token_latency_seconds"),
                ("vllm", "vllm:time_per_output_token_seconds"),
                ("sglang", "sglang:inter_token_latency_seconds"),
            ],
        ),
    ],
)
def test_one_fact_has_many_names(fact, spellings):
    for product, raw in spellings:
        found = canonical(product, raw)
        assert found is not None, raw
        assert found.name == fact


def test_a_port_counts_words_in_sysfs_and_bytes_in_the_exporter():
    sysfs = canonical("sysfs_infiniband", "port_rcv_data")
    exporter = canonical("node_exporter", "node_infiniband_port_data_received_bytes_total")
    assert sysfs is not None
    assert exporter is not None
    assert sysfs.name == exporter.name
    assert (sysfs.value(100), exporter.value(400)) == (400, 400)


def test_a_counter_with_and_without_its_suffix():
    for raw in ("vllm:prompt_tokens", "vllm:prompt_tokens_total"):
        found = canonical("vllm", raw)
        assert found is not None
        assert found.name == "engine.prompt_tokens"
        product = exposed(raw)
        assert product is not None
        assert product.product == "vllm"


def test_what_wraps_or_stops_is_kept_in_its_own_unit():
    """The wrap at 2^32 and the ceilings are of the counter as the hardware has it."""
    for product in products().values():
        for raw, name in product.aliases.items():
            if name.kind == Kind.COUNTER32 or name.ceiling:
                assert name.scale == 1, (product.product, raw)
