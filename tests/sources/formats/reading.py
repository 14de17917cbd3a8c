"""Reads bytes or a recorded sample with one format, and gives back rows with names instead of ids."""

from __future__ import annotations

import gzip
import io
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from skewscope.core.directory import Directory
from skewscope.sources.documents import tell
from skewscope.sources.format import SNIFF_BYTES, Format, Origin

SAMPLES = os.environ.get("SKEWSCOPE_SAMPLES", "")
samples = pytest.mark.skipif(not SAMPLES, reason="SKEWSCOPE_SAMPLES names no folder with recorded samples")
AT_NS = 1_700_000_000_000_000_000
SECOND = 10**9


class Read(NamedTuple):
    """Rows of all tables, as dictionaries with the schema's name as "table"."""

    rows: list[dict[str, Any]]
    notes: list[str]
    unmapped: dict[str, int]

    def of(self, *names: str) -> list[dict[str, Any]]:
        """Return the rows of events or counters with these names."""
        return [r for r in self.rows if r.get("kind") in names or r.get("name") in names]


def _named(directory: Directory, row: dict[str, Any]) -> dict[str, Any]:
    out = dict(row)
    for column in ("entity", "peer"):
        if column in out:
            out[column] = directory.entities[out[column]]
    if "name" in out:
        out["name"] = directory.names[out["name"]]
    elif "fields" in out:
        out["kind"] = directory.names[out["kind"]]
        out["fields"] = json.loads(directory.texts[out["fields"]] or "{}")
    if "key" in out:
        out["key"] = directory.texts[out["key"]]
    if "labels" in out:
        out["labels"] = directory.labels[out["labels"]]
    for column in ("src", "dst"):
        if column in out:
            out[column] = directory.addresses[out[column]]
    return out


def rows_of(directory: Directory, tables: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of some tables with names instead of ids."""
    return [
        _named(directory, {"table": name, **{c: v[i].item() for c, v in table.columns.items()}})
        for name, table in tables.items()
        for i in range(len(table))
    ]


def read(format: Format, data: bytes | str, name: str = "n1.txt", host: str = "n1") -> Read:
    """Read bytes; the format must be the one that is told from them."""
    raw = data.encode() if isinstance(data, str) else data
    directory = Directory()
    origin = Origin(directory, 0, name, host=host, at_ns=AT_NS)
    stream = io.BufferedReader(io.BytesIO(raw))  # type: ignore[arg-type]
    rows = [row for tables in format.read(stream, origin) for row in rows_of(directory, tables)]
    return Read(rows, origin.notes, dict(origin.unmapped))


def is_told(format: Format, data: bytes | str, name: str = "n1.txt") -> bool:
    """Whether this format is the one told from the bytes."""
    raw = data.encode() if isinstance(data, str) else data
    return tell(raw[:SNIFF_BYTES], name) is format


def sample(path: str) -> bytes:
    """Return a recorded sample, unpacked."""
    data = (Path(SAMPLES) / path).read_bytes()
    return gzip.decompress(data) if path.endswith(".gz") else data


def read_sample(format: Format, path: str, host: str = "n1") -> Read:
    """Read a recorded sample, which must be told as this format."""
    data = sample(path)
    name = Path(path).name.removesuffix(".gz")
    assert is_told(format, data, name)
    return read(format, data, name, host)
