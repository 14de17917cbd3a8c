"""The protobuf messages of Prometheus remote write and OTLP metrics, declared as data.

Only the fields that are used; others are skipped, as protobuf has it. The library reads the wire format;
descriptors are made here because the published Python packages of the two tie it to one version.
Sources: prometheus/prompb (v1 and io.prometheus.write.v2), opentelemetry-proto metrics/v1.
"""

from __future__ import annotations

from functools import cache
from typing import Any

PACKAGE = "skewscope"

# message: field: (number, type); "*" = repeated, "?" = presence is told; other types are messages.
MESSAGES: dict[str, dict[str, tuple[int, str]]] = {
    "Label": {"name": (1, "string"), "value": (2, "string")},
    "Sample": {"value": (1, "double"), "timestamp": (2, "int64")},
    "TimeSeries": {"labels": (1, "*Label"), "samples": (2, "*Sample")},
    "TimeSeries2": {"labels_refs": (1, "*uint32"), "samples": (2, "*Sample")},
    # Version 1 has the series in field 1, version 2 symbols in 4 and series in 5: one message reads both.
    "WriteRequest": {
        "timeseries": (1, "*TimeSeries"),
        "symbols": (4, "*string"),
        "timeseries2": (5, "*TimeSeries2"),
    },
    "AnyValue": {
        "string_value": (1, "?string"),
        "bool_value": (2, "?bool"),
        "int_value": (3, "?int64"),
        "double_value": (4, "?double"),
    },
    "KeyValue": {"key": (1, "string"), "value": (2, "AnyValue")},
    "Resource": {"attributes": (1, "*KeyValue")},
    "NumberDataPoint": {
        "time_unix_nano": (3, "fixed64"),
        "as_double": (4, "?double"),
        "as_int": (6, "?sfixed64"),
        "attributes": (7, "*KeyValue"),
        "flags": (8, "uint32"),
    },
    "Gauge": {"data_points": (1, "*NumberDataPoint")},
    # The temporality is an enumeration on the wire; JSON has its number, which an int32 takes too.
    "Sum": {"data_points": (1, "*NumberDataPoint"), "aggregation_temporality": (2, "int32")},
    "HistogramDataPoint": {
        "time_unix_nano": (3, "fixed64"),
        "count": (4, "fixed64"),
        "sum": (5, "?double"),
        "bucket_counts": (6, "*fixed64"),
        "explicit_bounds": (7, "*double"),
        "attributes": (9, "*KeyValue"),
        "flags": (10, "uint32"),
    },
    "Histogram": {"data_points": (1, "*HistogramDataPoint"), "aggregation_temporality": (2, "int32")},
    "ValueAtQuantile": {"quantile": (1, "double"), "value": (2, "double")},
    "SummaryDataPoint": {
        "time_unix_nano": (3, "fixed64"),
        "count": (4, "fixed64"),
        "sum": (5, "double"),
        "quantile_values": (6, "*ValueAtQuantile"),
        "attributes": (7, "*KeyValue"),
        "flags": (8, "uint32"),
    },
    "Summary": {"data_points": (1, "*SummaryDataPoint")},
    "Metric": {
        "name": (1, "string"),
        "gauge": (5, "Gauge"),
        "sum": (7, "Sum"),
        "histogram": (9, "Histogram"),
        "summary": (11, "Summary"),
    },
    "ScopeMetrics": {"metrics": (2, "*Metric")},
    "ResourceMetrics": {"resource": (1, "Resource"), "scope_metrics": (2, "*ScopeMetrics")},
    "ExportMetricsServiceRequest": {"resource_metrics": (1, "*ResourceMetrics")},
}

NEEDED = 'protobuf is not installed: pip install "skewscope[metrics]"'


@cache
def _pool() -> Any:
    from google.protobuf import descriptor_pb2, descriptor_pool

    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="skewscope.proto", package=PACKAGE, syntax="proto3")
    for message, fields in MESSAGES.items():
        made = file.message_type.add(name=message)
        for name, (number, text) in fields.items():
            field = made.field.add(name=name, number=number)
            field.label = kinds.LABEL_REPEATED if text.startswith("*") else kinds.LABEL_OPTIONAL
            plain = text.lstrip("*?")
            if plain in MESSAGES:
                field.type, field.type_name = kinds.TYPE_MESSAGE, f".{PACKAGE}.{plain}"
            else:
                field.type = getattr(kinds, f"TYPE_{plain.upper()}")
            if text.startswith("?"):  # proto3 tells presence by a oneof of one field
                field.proto3_optional = True
                field.oneof_index = len(made.oneof_decl)
                made.oneof_decl.add(name=f"_{name}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


@cache
def message(name: str) -> Any:
    """Return the class of a message; raises ImportError where protobuf is not installed."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{PACKAGE}.{name}"))


def parse(name: str, data: bytes) -> Any:
    """Return the message in the bytes; ValueError where there is none, ImportError without protobuf."""
    made = message(name)()
    from google.protobuf.message import DecodeError

    try:
        made.ParseFromString(data)
    except (DecodeError, RuntimeError) as error:
        raise ValueError(f"not a {name}") from error
    return made


def parse_json(name: str, text: str) -> Any:
    """Return the message in a JSON text; raises as `parse` does."""
    made = message(name)()
    from google.protobuf import json_format

    try:
        json_format.Parse(text, made, ignore_unknown_fields=True)
    except (json_format.Error, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise ValueError(f"not a {name}") from error
    return made
