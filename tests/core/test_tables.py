"""Tables: a table that exists is a valid one."""

import numpy as np
import pytest

from skewscope.core.tables import Column, Schema, Table

SCHEMA = Schema(
    "small", {"ts_ns": Column("int64", "ns", "time"), "size": Column("uint16", "bytes", "length")}
)


def table(times, sizes=None):
    columns = {"ts_ns": np.array(times)}
    return Table(SCHEMA, columns if sizes is None else {**columns, "size": np.array(sizes)})


def test_columns_take_the_declared_types_and_missing_ones_are_zero():
    made = table([1, 2, 3])
    assert made["ts_ns"].dtype == np.int64
    assert made["size"].dtype == np.uint16
    assert made["size"].tolist() == [0, 0, 0]
    assert len(made) == 3


def test_unknown_columns_and_unequal_lengths_are_refused():
    with pytest.raises(ValueError, match=r"table small: unknown columns \['speed'\]"):
        Table(SCHEMA, {"speed": np.zeros(2)})
    with pytest.raises(ValueError, match="column size has 1 of 2 rows"):
        table([1, 2], [3])


def test_rows_are_taken_by_mask_index_and_slice():
    made = table([1, 2, 3], [10, 20, 30])
    for rows in (np.array([True, False, True]), np.array([0, 2]), slice(0, None, 2)):
        assert made.take(rows)["size"].tolist() == [10, 30]


def test_joining_keeps_the_order_and_passes_over_empty_parts():
    parts = [table([1, 2]), SCHEMA.empty(), table([3])]
    assert Table.concat(SCHEMA, parts)["ts_ns"].tolist() == [1, 2, 3]
    assert len(Table.concat(SCHEMA, [])) == 0
    assert Table.concat(SCHEMA, parts[:2]) is parts[0]


def test_empty_and_zeroed_tables():
    assert len(SCHEMA.empty()) == 0
    assert SCHEMA.empty(2)["ts_ns"].tolist() == [0, 0]


def test_arrow_carries_types_units_and_meanings():
    arrow = table([1, 2], [3, 4]).to_arrow()
    assert arrow.column("size").to_pylist() == [3, 4]
    assert arrow.schema.field("ts_ns").metadata == {b"unit": b"ns", b"doc": b"time"}
    assert str(arrow.schema.field("size").type) == "uint16"
