import io
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewscope.core.directory import Directory
from skewscope.core.schemas import COUNTERS, METRICS, Kind
from skewscope.core.tables import Table
from skewscope.sources import protobufs
from skewscope.sources.documents import tell
from skewscope.sources.format import Origin
from skewscope.sources.formats.otlp_metrics import FORMAT, read

pytest.importorskip("google.protobuf", reason="protobuf (the extra `metrics`) is not installed")

T_NS = 1_700_000_000_000_000_000
REQUEST = {
    "resourceMetrics": [
        {
            "resource": {
                "attributes": [
                    {"key": "service.name", "value": {"stringValue": "vllm"}},
                    {"key": "service.instance.id", "value": {"stringValue": "10.0.0.3:8000"}},
                ]
            },
            "scopeMetrics": [
                {
                    "scope": {"name": "s"},
                    "metrics": [
                        {
                            "name": "vllm:num_requests_running",
                            "unit": "1",
                            "gauge": {
                                "dataPoints": [
                                    {
                                        "timeUnixNano": str(T_NS),
                                        "asInt": "3",
                                        "attributes": [{"key": "model.name", "value": {"stringValue": "m"}}],
                                    },
                                    {"timeUnixNano": str(T_NS), "flags": 1},
                                ]
                            },
                        },
                        {
                            "name": "vllm:prompt_tokens",
                            "sum": {
                                "aggregationTemporality": 2,
                                "isMonotonic": True,
                                "dataPoints": [{"timeUnixNano": str(T_NS + 1), "asDouble": 7.5}],
                            },
                        },
                        {
                            "name": "vllm:generation_tokens",
                            "sum": {
                                "aggregationTemporality": "AGGREGATION_TEMPORALITY_DELTA",
                                "dataPoints": [{"timeUnixNano": str(T_NS), "asDouble": 1}],
                            },
                        },
                        {
                            "name": "vllm:time_to_first_token_seconds",
                            "histogram": {
                                "aggregationTemporality": 2,
                                "dataPoints": [
                                    {
                                        "timeUnixNano": str(T_NS),
                                        "count": "6",
                                        "sum": 1.5,
                                        "bucketCounts": ["1", "2", "3"],
                                        "explicitBounds": [0.1, 0.5],
                                    }
                                ],
                            },
                        },
                        {
                            "name": "nv_inference_request_summary_us",
                            "summary": {
                                "dataPoints": [
                                    {
                                        "timeUnixNano": str(T_NS),
                                        "count": "2",
                                        "sum": 3e6,
                                        "quantileValues": [{"quantile": 0.99, "value": 2e6}],
                                    }
                                ]
                            },
                        },
                        {"name": "no.body"},
                        {
                            "name": "unheard.of",
                            "gauge": {"dataPoints": [{"timeUnixNano": "5", "asInt": "1"}]},
                        },
                    ],
                }
            ],
        }
    ]
}


def parse(data, **origin):
    directory = Directory()
    about = Origin(directory, 0, **origin)
    parts = list(read(io.BytesIO(data), about))
    whole = {s.name: Table.concat(s, [p[s.name] for p in parts if s.name in p]) for s in (COUNTERS, METRICS)}
    return whole, directory, about


def rows(data):
    tables, d, _ = parse(data)
    table = tables["metrics"]
    return {
        (d.names[int(n)], Kind(int(k)).name, None if math.isnan(b) else float(b)): float(v)
        for n, k, b, v in zip(table["name"], table["kind"], table["bound"], table["value"], strict=True)
    }


EXPECTED = {
    ("engine.requests_running", "GAUGE", None): 3.0,
    ("engine.prompt_tokens", "COUNTER64", None): 7.5,
    ("engine.ttft_s", "BUCKET", 0.1): 1.0,
    ("engine.ttft_s", "BUCKET", 0.5): 3.0,
    ("engine.ttft_s", "BUCKET", math.inf): 6.0,
    ("engine.ttft_s", "SUM", None): 1.5,
    ("engine.ttft_s", "COUNT", None): 6.0,
    ("engine.e2e_s", "QUANTILE", 0.99): 2.0,
    ("engine.e2e_s", "SUM", None): 3.0,
    ("engine.e2e_s", "COUNT", None): 2.0,
}


def test_json_and_protobuf_say_the_same():
    text = json.dumps(REQUEST)
    binary = protobufs.parse_json(
        "ExportMetricsServiceRequest",
        text.replace('"AGGREGATION_TEMPORALITY_DELTA"', "1"),
    ).SerializeToString()
    for data in (text.encode(), binary, text.encode() + b"\n\n"):
        assert tell(data, "x") is FORMAT
        assert rows(data) == EXPECTED
    tables, d, origin = parse(binary)
    assert {d.entities[int(e)] for e in tables["metrics"]["entity"]} == {"10.0.0.3:8000"}
    assert 'model_name="m",service_name' not in d.labels[1]
    assert d.labels[1] == 'model_name="m"'
    assert origin.unmapped == {"unheard_of": 1}
    assert origin.notes == ["1 metrics count anew each time: only running counts are read"]


def test_two_requests_are_two_lines():
    text = json.dumps(REQUEST).encode()
    tables, _, origin = parse(text + b"\nnot json\n" + text)
    assert len(tables["metrics"]) == 2 * len(EXPECTED)
    assert origin.notes[0] == "1 lines are not OTLP metrics"


def test_an_opaque_instance_gives_way_to_the_host():
    text = json.dumps(
        {
            "resourceMetrics": [
                {
                    "resource": {
                        "attributes": [
                            {"key": "service.instance.id", "value": {"stringValue": "6f1c"}},
                            {"key": "host.name", "value": {"stringValue": "dpu-7"}},
                        ]
                    },
                    "scopeMetrics": [
                        {
                            "metrics": [
                                {
                                    "name": "hw_packet_seq_err",
                                    "gauge": {
                                        "dataPoints": [
                                            {
                                                "timeUnixNano": "5",
                                                "asInt": "4",
                                                "attributes": [
                                                    {"key": "device", "value": {"stringValue": "mlx5_0"}}
                                                ],
                                            }
                                        ]
                                    },
                                }
                            ]
                        }
                    ],
                }
            ]
        }
    )
    tables, d, _ = parse(text.encode(), fallback="10.1.1.1")
    assert d.entities[int(tables["counters"]["entity"][0])] == "dpu-7/mlx5_0"
    assert tables["counters"]["value"].tolist() == [4.0]


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_an_error(data):
    FORMAT.sure(data, "x")
    parse(data)
    parse(b'{"resourceMetrics":' + data)


def test_depth_without_end_is_one_bad_line():
    _, _, origin = parse(b'{"resourceMetrics":' + b"[" * 100_000)
    assert origin.notes == ["1 lines are not OTLP metrics"]
