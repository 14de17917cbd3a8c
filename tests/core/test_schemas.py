"""The declared tables: every column has a type, a unit and a meaning, and units are in the names."""

import numpy as np
import pytest

from skewscope.core.schemas import CAPTURED, READ, SAMPLES

UNITS = {"_ns": "ns", "_bytes": "bytes"}


@pytest.mark.parametrize("schema", SAMPLES, ids=lambda s: s.name)
def test_columns_are_declared_in_full(schema):
    assert "ts_ns" in schema.columns
    for name, column in schema.columns.items():
        assert np.dtype(column.dtype).kind in "iuf"
        assert column.unit
        assert column.doc
        for suffix, unit in UNITS.items():
            assert not name.endswith(suffix) or column.unit == unit, name


def test_names_are_unique():
    assert len({s.name for s in SAMPLES}) == len(SAMPLES)


def test_what_was_read_says_where_and_of_what():
    for schema in READ:
        assert list(schema.columns)[:4] == ["ts_ns", "source", "line", "entity"], schema.name


def test_tables_of_flows_name_both_ends_and_the_tap():
    for schema in CAPTURED:
        assert {"tap", "flow", "way", "src", "dst"} <= set(schema.columns), schema.name


def test_other_tables_name_the_source_the_line_and_the_entity():
    for schema in READ:
        assert {"source", "line", "entity"} <= set(schema.columns), schema.name
