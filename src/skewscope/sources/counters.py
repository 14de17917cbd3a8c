"""Rows of the `counters` table from a product's own names: what all formats of counters share."""

from __future__ import annotations

import re
from functools import lru_cache

from skewscope.core.schemas import COUNTERS
from skewscope.core.tables import Table
from skewscope.sources.canonical import Name, canonical, products
from skewscope.sources.format import Origin, RowList

BATCH_READINGS = 1 << 13

_canonical = lru_cache(1 << 14)(canonical)
_NUMBER = re.compile(r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d{1,3})?")


def leading_number(text: str) -> float:
    """Return the number that a text begins with ("400 Gb/sec", "4: ACTIVE", "0x1f"), NaN without one."""
    text = text.strip()
    if text[:2].lower() == "0x":
        try:
            return float(int(text.split()[0][:20], 16))
        except ValueError:
            return float("nan")
    found = _NUMBER.match(text)
    return float(found[0][:400]) if found else float("nan")


class Counters:
    """Rows of one input; names that the table does not have are counted in `origin.unmapped`."""

    def __init__(self, origin: Origin, product: str) -> None:
        """`product`: whose names they are, a file of `names/products`."""
        self._origin, self._product = origin, product
        self._rows = RowList(COUNTERS)

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def full(self) -> bool:
        """Whether it is time to take what there is."""
        return len(self._rows) >= BATCH_READINGS

    def add(self, ts_ns: int, line: int, entity: str, raw: str, value: float, product: str = "") -> None:
        """Add a reading under the product's name; one that is known and not mapped is passed over."""
        name = self._named(product or self._product, raw)
        if name is None:
            return
        directory = self._origin.directory
        self._rows.add(
            ts_ns=ts_ns,
            source=self._origin.source,
            line=min(line, 2**32 - 1),
            entity=directory.entities.id(entity),
            name=directory.names.id(name.name),
            value=name.value(value),
            kind=int(name.kind),
            side=int(name.side),
            ceiling=name.ceiling,
        )

    def _named(self, product: str, raw: str) -> Name | None:
        found = canonical(product, raw) if len(raw) > 100 else _canonical(product, raw)
        if found is None and raw not in products()[product].unmapped:
            self._origin.unknown(raw[:100])
        return found

    def take(self) -> dict[str, Table]:
        """Return the rows so far and start anew."""
        return self._rows.take()
