"""The canonical names of counters and metrics, and what each product calls them: data in `names/`.

`names/canonical/*.toml` define the names (unit, kind, side, ceiling), `names/products/*.toml` the aliases
of one product each (scale to the canonical unit, sentinels, labels that make up the entity). A name with
`{0..7}` or `{a,b}` in it stands for several; the ranges of an alias and of its target run together.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from skewscope.core.schemas import Kind, Side

FOLDER = Path(__file__).parent / "names"

UNITS = frozenset[str]().union(
    ("bytes", "packets", "frames", "events", "errors", "requests", "messages", "bits", "blocks", "tokens"),
    ("s", "ticks", "bit/s", "bytes/s", "tokens/s", "transfers/s", "Hz", "lanes", "tasks", "workers"),
    ("ratio", "1", "code", "bitmask", "degC", "W", "J"),
)

KINDS: Mapping[str, Kind] = {
    "counter32": Kind.COUNTER32,
    "counter64": Kind.COUNTER64,
    "gauge": Kind.GAUGE,
    "percent": Kind.PERCENT,
    "last_code": Kind.LAST_CODE,
    "histogram": Kind.BUCKET,
}
SIDES: Mapping[str, Side] = {
    "": Side.ANY,
    "requester": Side.REQUESTER,
    "responder": Side.RESPONDER,
    "port": Side.PORT,
}
TABLES = frozenset({"counters", "metrics"})

_SPREAD = re.compile(r"\{(?:(\d+)\.\.(\d+)|([^{}]*,[^{}]*))\}")


class NameTableError(ValueError):
    """The name table contradicts itself; the message names the file and the entry."""


@dataclass(frozen=True)
class Name:
    """A canonical name; as found through an alias, also how the product's values become canonical."""

    name: str
    unit: str
    kind: Kind
    side: Side
    table: str
    """The samples table it belongs to: "counters" (hardware) or "metrics" (services; with labels)."""
    ceiling: float = 0.0
    """Value at which the counter stops for good; 0 = none."""
    doc: str = ""
    scale: float = 1.0
    """What the product's value is multiplied by."""
    sentinels: frozenset[float] = frozenset()
    """Values of the product that mean "not known"."""
    versions: str = ""
    """Versions of the product that use the alias, where not all do."""

    def value(self, raw: float) -> float:
        """Return a product's value in the canonical unit; NaN where it is a sentinel."""
        return float("nan") if raw in self.sentinels else raw * self.scale


@dataclass(frozen=True)
class Entity:
    """How the entity of some of a product's series is made from their labels."""

    prefix: str
    """Series whose names begin so."""
    parts: tuple[str, ...]
    """Parts joined by "/" after the host, as "gpu{gpu}"; a part whose label is missing is left out."""


@dataclass
class Product:
    """The names of one product, in all its versions."""

    product: str
    doc: str
    exposed: bool = False
    """Its names appear as they are in Prometheus text, remote write and OTLP."""
    aliases: dict[str, Name] = field(default_factory=dict)
    unmapped: dict[str, str] = field(default_factory=dict)
    """Names that are known and deliberately not mapped, and why."""
    host_labels: tuple[str, ...] = ()
    """Labels that may name the host, the best first."""
    entities: tuple[Entity, ...] = ()


def spread(text: str) -> list[str]:
    """Return every name that a name with one `{0..7}` or `{a,b}` in it stands for."""
    found = _SPREAD.search(text)
    if found is None:
        return [text]
    low, high, listed = found.groups()
    inner = listed.split(",") if listed else [str(i) for i in range(int(low), int(high) + 1)]
    return [text[: found.start()] + part + text[found.end() :] for part in inner]


def read_names(file: Path) -> Iterator[Name]:
    """Yield the names that one file of `names/canonical` defines; raises NameTableError."""
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    for short, entry in data["names"].items():
        where = f"{file.name}: {short}"
        if entry.get("unit") not in UNITS:
            raise NameTableError(f"{where}: unit {entry.get('unit')!r} is not known")
        if entry.get("kind") not in KINDS:
            raise NameTableError(f"{where}: kind {entry.get('kind')!r} is not known")
        if entry.get("side", "") not in SIDES:
            raise NameTableError(f"{where}: side {entry['side']!r} is not known")
        table = entry.get("table", data["table"])
        if table not in TABLES:
            raise NameTableError(f"{where}: table {table!r} is not known")
        if not entry.get("doc"):
            raise NameTableError(f"{where}: no doc")
        for name in spread(short):
            yield Name(
                name=f"{data['area']}.{name}",
                unit=entry["unit"],
                kind=KINDS[entry["kind"]],
                side=SIDES[entry.get("side", "")],
                table=table,
                ceiling=float(entry.get("ceiling", 0)),
                doc=entry["doc"],
            )


@cache
def names() -> Mapping[str, Name]:
    """Return every canonical name; raises NameTableError where one is defined twice."""
    found: dict[str, Name] = {}
    for file in sorted((FOLDER / "canonical").glob("*.toml")):
        for name in read_names(file):
            if name.name in found:
                raise NameTableError(f"{file.name}: {name.name} is defined twice")
            found[name.name] = name
    return found


def _aliases(data: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield (product's name, canonical name, settings) of every alias."""
    for group in data.get("same", ()):
        for short in group["names"]:
            for name in spread(short):
                yield group.get("prefix", "") + name, f"{group['area']}.{name}", group
    for raw, target in data.get("alias", {}).items():
        settings = {"to": target} if isinstance(target, str) else target
        sources, targets = spread(raw), spread(settings["to"])
        if len(targets) == 1:
            targets *= len(sources)
        if len(sources) != len(targets):
            raise NameTableError(f"{data['product']}: {raw} and {settings['to']} differ in number")
        for source, to in zip(sources, targets, strict=True):
            yield source, to, settings


def read_product(file: Path, known: Mapping[str, Name]) -> Product:
    """Read one file of `names/products`; raises NameTableError."""
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    made = Product(
        data["product"],
        data["doc"],
        exposed=data.get("exposed", False),
        host_labels=tuple(data.get("host_labels", ())),
        entities=tuple(Entity(e["prefix"], tuple(e["parts"])) for e in data.get("entity", ())),
    )
    common = frozenset(map(float, data.get("sentinels", ())))
    for raw, to, settings in _aliases(data):
        if to not in known:
            raise NameTableError(f"{file.name}: {raw}: no canonical name {to!r}")
        if raw in made.aliases:
            raise NameTableError(f"{file.name}: {raw} is given twice")
        own = frozenset(map(float, settings.get("sentinels", ())))
        made.aliases[raw] = replace(
            known[to],
            scale=float(settings.get("scale", 1)),
            sentinels=common | own,
            versions=settings.get("versions", ""),
        )
    for why, listed in data.get("unmapped", {}).items():
        for raw in (name for short in listed for name in spread(short)):
            if raw in made.aliases or raw in made.unmapped:
                raise NameTableError(f"{file.name}: {raw} is given twice")
            made.unmapped[raw] = why
    return made


@cache
def products() -> Mapping[str, Product]:
    """Return every product by name; raises NameTableError."""
    found: dict[str, Product] = {}
    for file in sorted((FOLDER / "products").glob("*.toml")):
        made = read_product(file, names())
        if made.product != file.stem:
            raise NameTableError(f"{file.name}: the product is called {made.product}")
        found[made.product] = made
    return found


def canonical(product: str, raw_name: str) -> Name | None:
    """Return what a product's name means, None where the table does not have it.

    A counter may come with or without the suffix `_total`: client libraries add it, OTLP leaves it out.
    """
    aliases = products()[product].aliases
    found = aliases.get(raw_name)
    if found is None:
        other = raw_name.removesuffix("_total") if raw_name.endswith("_total") else f"{raw_name}_total"
        found = aliases.get(other)
    return found


@cache
def _exposed() -> Mapping[str, Product]:
    found: dict[str, Product] = {}
    for product in products().values():
        for raw in (*product.aliases, *product.unmapped) if product.exposed else ():
            if raw in found:
                raise NameTableError(f"{raw} is a name of {found[raw].product} and of {product.product}")
            found[raw] = product
    return found


def exposed(raw_name: str) -> Product | None:
    """Return the product whose Prometheus name this is."""
    table = _exposed()
    other = raw_name.removesuffix("_total") if raw_name.endswith("_total") else f"{raw_name}_total"
    return table.get(raw_name) or table.get(other)
