"""Column tables: a declared schema over NumPy arrays, exchanged as Arrow at every boundary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Column:
    """One column: its dtype, its unit ("1" where it has none) and what it means."""

    dtype: str
    unit: str
    doc: str


@dataclass(frozen=True)
class Schema:
    """A named, ordered set of columns. `ts_ns`, where present, is event time."""

    name: str
    columns: Mapping[str, Column]

    def empty(self, rows: int = 0) -> Table:
        """Return a table of `rows` zeroed rows."""
        return Table(self, {n: np.zeros(rows, dtype=c.dtype) for n, c in self.columns.items()})


class Table:
    """Equal-length arrays under the names and dtypes of one schema.

    Arrays of shape (n,). Missing columns are zero-filled, unknown columns and unequal lengths
    raise ValueError: a table that exists is a valid one.
    """

    __slots__ = ("columns", "schema")

    def __init__(self, schema: Schema, columns: Mapping[str, Array]) -> None:
        unknown = set(columns) - set(schema.columns)
        if unknown:
            raise ValueError(f"table {schema.name}: unknown columns {sorted(unknown)}")
        rows = max((len(v) for v in columns.values()), default=0)
        self.schema = schema
        self.columns: dict[str, Array] = {}
        for name, column in schema.columns.items():
            values = columns.get(name)
            if values is None:
                values = np.zeros(rows, dtype=column.dtype)
            if len(values) != rows:
                raise ValueError(f"table {schema.name}: column {name} has {len(values)} of {rows} rows")
            self.columns[name] = np.asarray(values, dtype=column.dtype)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    def take(self, rows: Array | slice) -> Table:
        """Return the rows named by an index array, a mask or a slice."""
        return Table(self.schema, {n: v[rows] for n, v in self.columns.items()})

    def to_arrow(self) -> pa.Table:
        """Return the same columns as an Arrow table; units and meanings travel as metadata."""
        import pyarrow as pa

        fields = [
            pa.field(n, pa.from_numpy_dtype(np.dtype(c.dtype)), metadata={"unit": c.unit, "doc": c.doc})
            for n, c in self.schema.columns.items()
        ]
        return pa.table(list(self.columns.values()), schema=pa.schema(fields))

    @staticmethod
    def concat(schema: Schema, tables: Iterable[Table]) -> Table:
        """Join tables of one schema end to end."""
        parts = [t for t in tables if len(t)]
        if not parts:
            return schema.empty()
        if len(parts) == 1:
            return parts[0]
        return Table(schema, {n: np.concatenate([p[n] for p in parts]) for n in schema.columns})


class Heard(dict[str, Table]):
    """A batch of a live tap that tells how far its clock is: nothing before `reached_ns` will come."""

    def __init__(self, tables: Mapping[str, Table], reached_ns: int) -> None:
        super().__init__(tables)
        self.reached_ns = reached_ns
