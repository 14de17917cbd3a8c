"""From a series as Prometheus or OTLP name it to rows of `counters` and `metrics` under canonical names.

Prometheus text, remote write and OTLP differ in bytes only: each hands a name, labels and a value to a
`SeriesReader`, which knows the name table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from skewscope.core.schemas import COUNTERS, METRICS, Kind
from skewscope.core.tables import Table
from skewscope.sources.canonical import Name, Product, canonical, exposed
from skewscope.sources.format import Origin, RowList

MAX_SERIES = 1 << 18
"""Different series that are remembered: a scrape of a large host has 30,000; hostile input has no end."""

ROLES: Mapping[str, Kind] = {"_bucket": Kind.BUCKET, "_sum": Kind.SUM, "_count": Kind.COUNT}
ENDPOINTS = frozenset({"engine", "gateway"})
"""Areas whose entity is an address with its port; all others are about a host or a part of one."""

_FIELD = re.compile(r"\{([\w|]+)(?:-([^}]*))?\}")
_PORT = re.compile(r":\d+$")
_ABOUT = frozenset({"instance", "job", "le", "quantile", "__name__"})


@dataclass(slots=True)
class Target:
    """Where the values of one series go."""

    name: Name
    kind: Kind
    entity: int
    name_id: int
    labels: int
    bound: float


def host_part(endpoint: str) -> str:
    """Return an endpoint without its port: "10.0.0.3:9100" and "[fd00::1]:80" as well as bare addresses."""
    if endpoint.startswith("["):
        return endpoint[1:].partition("]")[0]
    return _PORT.sub("", endpoint) if endpoint.count(":") == 1 else endpoint


def label_text(labels: Mapping[str, str]) -> str:
    """Return labels as the Directory keeps them: sorted, quoted, joined by commas."""
    return ",".join(f'{key}="{_escaped(labels[key])}"' for key in sorted(labels))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class SeriesReader:
    """Turns series into rows; one for each input, so that ids are looked up once a series."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._counters = RowList(COUNTERS)
        self._metrics = RowList(METRICS)
        self._owners: dict[tuple[str, int], str] = {}
        self.rows = 0

    def target(self, raw_name: str, labels: Mapping[str, str]) -> Target | None:
        """Return where a series' values go; None (and counted) where the name table leaves it out.

        `le` and `quantile` among the labels tell a bucket and a quantile; `_sum` and `_count` after a
        histogram's name tell those. Where one product names one fact twice in the same input (a new name
        beside a deprecated one), the first name is taken.
        """
        product, name, kind, family = _find(raw_name, labels)
        if product is None or name is None:
            self._origin.unknown(family)
            return None
        entity, used = self._entity(product, name, family, labels)
        owner = self._owners.setdefault((name.name, entity), family)
        if owner != family or len(self._owners) > MAX_SERIES:
            return None
        rest = {k: v for k, v in labels.items() if k not in used and k not in _ABOUT}
        directory = self._origin.directory
        bound = labels.get("le", labels.get("quantile", "nan"))
        return Target(
            name=name,
            kind=kind,
            entity=entity,
            name_id=directory.names.id(name.name),
            labels=directory.labels.id(label_text(rest)) if rest and name.table == "metrics" else 0,
            bound=_number(bound),
        )

    def _entity(
        self, product: Product, name: Name, family: str, labels: Mapping[str, str]
    ) -> tuple[int, set[str]]:
        """Return the entity's id and the labels that its name took up."""
        own = [labels.get(label, "") for label in product.host_labels]
        about = labels.get("instance") or self._origin.about(*own)
        used = set(product.host_labels)
        if name.name.partition(".")[0] in ENDPOINTS:
            return self._origin.directory.entities.id(about), used
        parts = [host_part(about)]
        rule = next((e for e in product.entities if family.startswith(e.prefix)), None)
        for template in rule.parts if rule else ():
            filled = _filled(template, labels, used)
            if filled:
                parts.append(filled)
        return self._origin.directory.entities.id("/".join(parts)), used

    def add(self, target: Target, ts_ns: int, value: float, line: int) -> None:
        """Add one reading; a value that the product uses for "not known" is kept as NaN."""
        name = target.name
        scaled = target.kind not in (Kind.BUCKET, Kind.COUNT)  # those two count observations
        known = name.value(value) if scaled else value
        self.rows += 1
        if name.table == "counters":
            self._counters.add(
                ts_ns=ts_ns,
                source=self._origin.source,
                line=line,
                entity=target.entity,
                name=target.name_id,
                value=known,
                kind=target.kind,
                side=name.side,
                ceiling=name.ceiling,
            )
            return
        self._metrics.add(
            ts_ns=ts_ns,
            source=self._origin.source,
            line=line,
            entity=target.entity,
            name=target.name_id,
            labels=target.labels,
            bound=target.bound * name.scale if target.kind == Kind.BUCKET else target.bound,
            value=known,
            kind=target.kind,
        )

    def take(self) -> dict[str, Table]:
        """Return the rows so far, in the order of their time, and start anew."""
        made = {}
        for rows in (self._counters, self._metrics):
            if len(rows):
                for schema, table in rows.take().items():
                    made[schema] = table.take(np.argsort(table["ts_ns"], kind="stable"))
        self.rows = 0
        return made


def _find(raw: str, labels: Mapping[str, str]) -> tuple[Product | None, Name | None, Kind, str]:
    """Return the product, the name, the kind of this series and the family that it belongs to."""
    product = exposed(raw)
    if product is not None:
        name = canonical(product.product, raw)
        kind = name.kind if name is not None else Kind.GAUGE
        if kind == Kind.BUCKET:  # a histogram's bare name: a quantile of a summary, or an old plain gauge
            kind = Kind.QUANTILE if "quantile" in labels else Kind.GAUGE
        return product, name, kind, raw
    for suffix, role in ROLES.items():
        if raw.endswith(suffix):
            family = raw.removesuffix(suffix)
            product = exposed(family)
            if product is not None:
                return product, canonical(product.product, family), role, family
    return None, None, Kind.GAUGE, raw


def _filled(template: str, labels: Mapping[str, str], used: set[str]) -> str:
    """Fill "{label}", "{one|other}" and "{label-PREFIX}" in; empty where a label is missing."""
    missing = False

    def value(match: re.Match[str]) -> str:
        nonlocal missing
        for label in match[1].split("|"):
            found = labels.get(label, "")
            if found:
                used.add(label)
                return found.removeprefix(match[2] or "")
        missing = True
        return ""

    text = _FIELD.sub(value, template)
    return "" if missing else text


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
