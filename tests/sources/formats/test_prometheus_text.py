import io
import math
import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewscope.core.directory import Directory
from skewscope.core.schemas import COUNTERS, METRICS, Kind
from skewscope.core.tables import Table
from skewscope.sources.documents import tell
from skewscope.sources.format import Origin
from skewscope.sources.formats.prometheus_text import FORMAT, read, reading, split_labels, split_line

SAMPLES = os.environ.get("SKEWSCOPE_SAMPLES", "")
samples = pytest.mark.skipif(not SAMPLES, reason="SKEWSCOPE_SAMPLES names no folder with recorded samples")

AT_NS = 1_700_000_000_000_000_000


def parse(text: str | bytes, **origin: str) -> tuple[dict[str, Table], Directory, Origin]:
    directory = Directory(sources=["x"])
    about = Origin(directory, 0, at_ns=AT_NS, **origin)
    data = text if isinstance(text, bytes) else text.encode()
    parts = list(read(io.BytesIO(data), about))
    whole = {s.name: Table.concat(s, [p[s.name] for p in parts if s.name in p]) for s in (COUNTERS, METRICS)}
    return whole, directory, about


def values(text: str | bytes, **origin: str) -> dict[tuple[str, str, str], float]:
    """Everything read, by (entity, name, labels)."""
    tables, d, _ = parse(text, **origin)
    found = {}
    for table in tables.values():
        for i in range(len(table)):
            labels = d.labels[int(table["labels"][i])] if "labels" in table.schema.columns else ""
            key = (d.entities[int(table["entity"][i])], d.names[int(table["name"][i])], labels)
            found[key] = float(table["value"][i])
    return found


def test_an_engine_is_its_endpoint_and_keeps_its_labels():
    text = 'vllm:num_requests_running{engine="1",model_name="m"} 3.0\n'
    assert values(text, host="10.0.0.3:8000") == {
        ("10.0.0.3:8000", "engine.requests_running", 'engine="1",model_name="m"'): 3.0
    }


def test_a_part_of_a_host_is_named_by_labels_and_has_no_port():
    text = 'node_infiniband_link_downed_total{device="mlx5_0",port="1"} 7\n'
    assert values(text, host="10.0.0.3:9100") == {("10.0.0.3/mlx5_0/1", "port.link_downed", ""): 7.0}


def test_labels_of_a_federation_name_the_instance():
    text = 'node_load1{instance="[fd00::1]:9100",job="node"} 2\n'
    assert values(text, host="prometheus:9090") == {("fd00::1", "host.load1", ""): 2.0}


def test_values_are_canonical():
    found = values(
        'DCGM_FI_DEV_FB_USED{gpu="3",Hostname="h"} 2\nDCGM_FI_DEV_GPU_UTIL{gpu="3",Hostname="h"} 50\n'
    )
    assert found == {
        ("h/gpu3", "gpu.memory_used_bytes", ""): 2 * 1048576.0,
        ("h/gpu3", "gpu.utilization_ratio", ""): 0.5,
    }


@pytest.mark.parametrize("blank", ["9223372036854775794", "2147483632", "140737488355328"])
def test_blank_values_of_dcgm_are_not_numbers(blank):
    found = values(f'DCGM_FI_DEV_POWER_USAGE{{gpu="0",Hostname="h"}} {blank}\n')
    assert math.isnan(found["h/gpu0", "gpu.power_w", ""])


def test_an_unused_prefix_cache_has_no_hit_rate():
    found = values('vllm:gpu_prefix_cache_hit_rate{model_name="m"} -1.0\n', host="e:1")
    assert math.isnan(found["e:1", "engine.prefix_hit_ratio", 'model_name="m"'])


def test_a_histogram_in_milliseconds_is_one_in_seconds():
    text = (
        'sglang:kv_transfer_latency_ms_bucket{le="250"} 4\n'
        "sglang:kv_transfer_latency_ms_sum 800\n"
        "sglang:kv_transfer_latency_ms_count 5\n"
    )
    table = parse(text)[0]["metrics"]
    assert table["kind"].tolist() == [Kind.BUCKET, Kind.SUM, Kind.COUNT]
    assert table["value"].tolist() == [4.0, pytest.approx(0.8), 5.0]
    assert table["bound"][0] == pytest.approx(0.25)
    assert math.isnan(table["bound"][1])


def test_a_name_that_ends_like_a_part_of_a_histogram_is_itself():
    assert values("tgi_request_count 12\n", host="e:1") == {("e:1", "engine.requests_started", ""): 12.0}


def test_a_histogram_that_is_called_a_total_is_a_histogram():
    table = parse('vllm:iteration_tokens_total_bucket{le="8.0"} 3\n')[0]["metrics"]
    assert (table["kind"].tolist(), table["bound"].tolist()) == ([Kind.BUCKET], [8.0])


def test_a_deprecated_name_beside_its_successor_is_not_read_twice():
    text = (
        'vllm:kv_cache_usage_perc{model_name="m"} 0.5\n'
        'vllm:gpu_cache_usage_perc{model_name="m"} 0.5\n'
        'vllm:kv_cache_usage_perc{model_name="n"} 0.6\n'
    )
    assert len(parse(text)[0]["metrics"]) == 2


def test_times():
    text = 'node_load1 1 1700000000123\nnode_procs_running 1\nnode_procs_blocked 1 1700000000.5 # {a="b"} 1\n'
    assert sorted(parse(text)[0]["metrics"]["ts_ns"].tolist()) == [
        AT_NS,
        AT_NS + 123_000_000,
        AT_NS + 500_000_000,
    ]


def test_names_outside_the_table_are_counted():
    _, _, origin = parse('vllm:made_up 1\nvllm:made_up 2\nhttp_requests_bucket{le="1"} 1\n')
    assert origin.unmapped == {"vllm:made_up": 1, "http_requests_bucket": 1}


def test_a_bad_line_costs_itself_only():
    text = 'node_load1 x\nnode_load1{a="b 1\n} 3\nnode_procs_running 1_000\nnode_procs_running 4\n\x00\n'
    tables, _, origin = parse(text)
    assert tables["metrics"]["value"].tolist() == [4.0]
    assert origin.notes == ["5 lines are not samples"]


def test_labels_with_braces_quotes_and_escapes():
    body = r'a="}{,=",b="x\"y\\n\n",c=""'
    assert split_labels(body) == {"a": "}{,=", "b": 'x"y\\n\n', "c": ""}
    assert split_line(f"n{{{body}}} 1") == (f"n{{{body}}}", " 1")
    assert split_labels('a="b" c') is None


def test_a_huge_unclosed_label_takes_no_time():
    begin = time.process_time()
    tables, _, origin = parse(
        "node_load1{" + 'a="b",' * 100_000 + "} x\nnode_load1{" + '"' * 300_001 + "} 1\n"
    )
    assert len(tables["metrics"]) == 0
    assert origin.notes == ["2 lines are not samples"]
    assert time.process_time() - begin < 20  # a regular expression gone wild takes hours


NUMBERS = st.floats(allow_nan=False) | st.integers(-(2**70), 2**70).map(float)


@given(st.lists(st.tuples(st.text(max_size=12), NUMBERS), max_size=20))
def test_what_is_written_is_read(series):
    def escape(text):
        return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    kept = [(t, v) for t, v in series if "\r" not in t and t == t.encode("utf-8", "replace").decode()]
    text = "".join(f'vllm:num_requests_running{{model_name="{escape(t)}"}} {v!r}\n' for t, v in kept)
    table = parse(text)[0]["metrics"]
    assert table["value"].tolist() == [v for _, v in kept]


@given(st.binary(max_size=400))
def test_any_bytes_are_read_without_an_error(data):
    FORMAT.sure(data, "x.prom")
    parse(data)
    parse(b"node_load1" + data)


@given(st.text(alphabet="01.eE+-_ nainf \t", max_size=20))
def test_a_reading_is_a_number_and_a_time_or_nothing(text):
    got = reading(text, 5)
    assert got is None or (isinstance(got[0], float) and isinstance(got[1], int))


def test_an_independent_parser_finds_the_same():
    parser = pytest.importorskip("prometheus_client.parser", reason="prometheus_client is not installed")
    text = (
        "# HELP vllm:num_requests_running Running.\n# TYPE vllm:num_requests_running gauge\n"
        'vllm:num_requests_running{model_name="a\\"b\\\\c\\n}",engine="0"} 1.5e3 1700000000123\n'
        'vllm:num_requests_running{model_name="# x",engine="1",} +Inf\n'
        "# TYPE node_load1 gauge\nnode_load1   -0.25\n"
    )
    expected = sorted(
        sample.value for family in parser.text_string_to_metric_families(text) for sample in family.samples
    )
    assert sorted(parse(text)[0]["metrics"]["value"].tolist()) == expected == [-0.25, 1500.0, math.inf]


def test_how_sure():
    sure = FORMAT.sure
    assert sure(b"# HELP a b\n# TYPE a counter\na 1\n", "x") == 2
    assert sure(b'nccl_bus_bandwidth_gbs{gpu="GPU0"} 1\n', "x") == 2
    assert sure(b"some_thing 1\n", "x.prom") == 1
    assert sure(b"some_thing 1\n", "x") == 0
    assert sure(b"RxErr 0\nBadTLP 0\n", "aer_dev_correctable") == 0
    assert sure(b"NIC statistics:\n     rx_packets: 5\n", "ethtool.txt") == 0
    assert sure(b"hw_np_cnp_sent\nhw_rp_cnp_handled\n", "names.txt") == 0
    assert sure(b"\x00\x01", "x.prom") == 0


EXPECTED = {
    "metrics/vllm_v0_2024-06_opt125m.prom": (0, 87, 3),
    "metrics/vllm_2025-01_qwen25_coder.prom": (0, 27, 2),
    "metrics/sglang_saturated_llama31_8b.prom": (0, 70, 0),
    "metrics/dcgm_exporter_t4_idle.prom": (20, 0, 2),
    "metrics/node_exporter_infiniband_pci.prom": (45, 0, 17),
    "nccl/inspector_v5_1.prom": (0, 4, 0),
}
"""Rows of counters, rows of metrics, names left out on purpose; counted by eye from the files."""


@pytest.mark.samples
@samples
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_real_scrapes(name):
    data = (Path(SAMPLES) / name).read_bytes()
    assert tell(data[: 1 << 14], Path(name).name) is FORMAT
    tables, _, origin = parse(data)
    counters, metrics, unmapped = EXPECTED[name]
    assert (len(tables["counters"]), len(tables["metrics"]), len(origin.unmapped)) == (
        counters,
        metrics,
        unmapped,
    )
    assert origin.notes == []


@pytest.mark.samples
@samples
def test_what_the_saturated_server_says():
    found = values((Path(SAMPLES) / "metrics/sglang_saturated_llama31_8b.prom").read_bytes(), host="e:1")
    model = 'model_name="meta-llama/Llama-3.1-8B-Instruct"'
    assert found["e:1", "engine.requests_running", model] == 162
    assert found["e:1", "engine.requests_waiting", model] == 2826
    assert found["e:1", "engine.kv_usage_ratio", model] == pytest.approx(0.28)


@pytest.mark.samples
@samples
def test_the_inspector_tells_bytes_and_seconds():
    found = values((Path(SAMPLES) / "nccl/inspector_v5_1.prom").read_bytes())
    by_name = {name: value for (entity, name, _), value in found.items() if entity == "nvl72004-T01/gpu0"}
    assert by_name["nccl.bus_bytes_per_s"] == pytest.approx(678.263e9)
    assert by_name["nccl.collective_s"] == pytest.approx(9498.47e-6)


@pytest.mark.samples
@samples
def test_a_saturated_wait_counter_is_seen_to_be_so():
    data = (Path(SAMPLES) / "metrics/node_exporter_infiniband_pci.prom").read_bytes()
    tables, d, _ = parse(data)
    table = tables["counters"]
    names = [d.names[int(n)] for n in table["name"]]
    waits = [i for i, n in enumerate(names) if n == "port.xmit_wait"]
    assert any(table["value"][i] == table["ceiling"][i] == 4294967295 for i in waits)
    down = [d.entities[int(e)] for e, n in zip(table["entity"], names, strict=True) if n == "pcie.link_width"]
    assert any(entity.endswith("/pci 0000:00:02.1") for entity in down)
