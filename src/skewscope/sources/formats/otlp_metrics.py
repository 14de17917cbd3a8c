"""OTLP metrics: protobuf, one request; JSON, one request a line as the collector's file exporter has it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

from skewscope.core.tables import Table
from skewscope.sources import protobufs
from skewscope.sources.canonical import exposed
from skewscope.sources.format import Format, Origin, lines
from skewscope.sources.series import SeriesReader

MAX_BYTES = 1 << 26
DELTA = 1
"""AGGREGATION_TEMPORALITY_DELTA"""
ENUMS = {
    f'"AGGREGATION_TEMPORALITY_{n}"': str(i) for i, n in enumerate(("UNSPECIFIED", "DELTA", "CUMULATIVE"))
}
NO_VALUE = 1
"""Flag of a data point: nothing was recorded."""
_LIMIT_NS = 1 << 62
REQUEST = "ExportMetricsServiceRequest"


def _text(value: Any) -> str:
    for field in ("string_value", "int_value", "double_value"):
        if value.HasField(field):
            return str(getattr(value, field))
    return ("false", "true")[value.bool_value] if value.HasField("bool_value") else ""


def _attributes(listed: Any) -> dict[str, str]:
    return {pair.key.replace(".", "_"): _text(pair.value) for pair in listed}


def resource_labels(listed: Any) -> dict[str, str]:
    """Return the labels that a resource gives all its series: who it is, in Prometheus' words.

    The collector keeps a scraped address in service.instance.id; applications put an opaque id there,
    and then the host's name says more.
    """
    found = _attributes(listed)
    instance, host = found.pop("service_instance_id", ""), found.get("host_name", "")
    labels = {"job": found.get("service_name", ""), "Hostname": host, "hostname": host}
    labels["instance"] = instance if ":" in instance or not host else ""
    return {k: v for k, v in labels.items() if v}


class _Points:
    """Hands the data points of one input to the reader under Prometheus' names."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self.reader = SeriesReader(origin)
        self.deltas = 0
        self.line = 0

    def add(self, request: Any) -> None:
        for resource in request.resource_metrics:
            common = resource_labels(resource.resource.attributes)
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    self._metric(metric, common)

    def _metric(self, metric: Any, common: Mapping[str, str]) -> None:
        name = metric.name if exposed(metric.name) else metric.name.replace(".", "_")
        forms: dict[str, Callable[[str, dict[str, str], Any], None]] = {
            "gauge": self._number,
            "sum": self._number,
            "histogram": self._histogram,
            "summary": self._summary,
        }
        for form, hand_on in forms.items():
            if not metric.HasField(form):
                continue
            data = getattr(metric, form)
            if getattr(data, "aggregation_temporality", 0) == DELTA:
                self.deltas += 1
                continue
            for point in data.data_points:
                if not point.flags & NO_VALUE and 0 < point.time_unix_nano < _LIMIT_NS:
                    hand_on(name, {**common, **_attributes(point.attributes)}, point)

    def _row(self, name: str, labels: dict[str, str], point: Any, value: float) -> None:
        target = self.reader.target(name, labels)
        if target is not None:
            self.reader.add(target, point.time_unix_nano, value, self.line)

    def _number(self, name: str, labels: dict[str, str], point: Any) -> None:
        self._row(name, labels, point, float(point.as_int) if point.HasField("as_int") else point.as_double)

    def _histogram(self, name: str, labels: dict[str, str], point: Any) -> None:
        bounds = [*point.explicit_bounds, math.inf]
        if len(point.bucket_counts) == len(bounds):
            total = 0.0
            for bound, count in zip(bounds, point.bucket_counts, strict=True):
                total += count  # Prometheus' buckets hold all below
                self._row(f"{name}_bucket", {**labels, "le": repr(bound)}, point, total)
        if point.HasField("sum"):
            self._row(f"{name}_sum", labels, point, point.sum)
        self._row(f"{name}_count", labels, point, float(point.count))

    def _summary(self, name: str, labels: dict[str, str], point: Any) -> None:
        for one in point.quantile_values:
            self._row(name, {**labels, "quantile": repr(one.quantile)}, point, one.value)
        self._row(f"{name}_sum", labels, point, point.sum)
        self._row(f"{name}_count", labels, point, float(point.count))


def _requests(stream: BinaryIO, origin: Origin, points: _Points) -> Iterator[Any]:
    first = stream.read(1)
    if first != b"{":
        yield protobufs.parse(REQUEST, first + stream.read(MAX_BYTES))
        return
    bad = 0
    for number, text in lines(stream, origin):
        points.line = number
        whole = "{" + text if number == 1 else text
        if not whole.strip():
            continue
        for name, value in ENUMS.items():  # JSON should have the number, and some writers have the name
            whole = whole.replace(name, value)
        try:
            yield protobufs.parse_json(REQUEST, whole)
        except ValueError:
            bad += 1
    if bad:
        origin.notes.append(f"{bad} lines are not OTLP metrics")


def read(stream: BinaryIO, origin: Origin) -> Iterator[dict[str, Table]]:
    """Yield the data points of each request in the order of their time."""
    points = _Points(origin)
    try:
        for request in _requests(stream, origin, points):
            points.add(request)
            yield points.reader.take()
    except ImportError:
        origin.notes.append(protobufs.NEEDED)
    except ValueError as error:
        origin.notes.append(f"cannot be read: {error}")
    if points.deltas:
        origin.notes.append(f"{points.deltas} metrics count anew each time: only running counts are read")


def sure(head: bytes, name: str) -> int:
    """JSON is told by its first key; protobuf by a resource and a first metric of a known name."""
    if head.startswith(b"{"):
        return 2 * (b'"resourceMetrics"' in head[:200])
    if head[:1] != b"\n" or b"\x12" not in head[:4096] or b"__name__" in head[:512]:
        return 0
    return 2 * _known_name(head)


def _known_name(head: bytes) -> bool:
    """Look for a name of the table among the short texts of field 1, as a metric begins."""
    at = 0
    for _ in range(2000):
        at = head.find(b"\n", at) + 1
        if not at or at >= len(head):
            return False
        size = head[at]
        text = head[at + 1 : at + 1 + size]
        if 2 < size < 128 and len(text) == size and text.isascii():
            name = text.decode("ascii")
            if exposed(name) or exposed(name.replace(".", "_")):
                return True
    return False


FORMAT = Format("otlp metrics", "metrics as OpenTelemetry exports them, protobuf or JSON", sure, read)
