"""What all formats have in common."""

import io
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.core.directory import Directory
from skewscope.core.schemas import READ
from skewscope.core.tables import Table
from skewscope.sources.documents import all_formats, tell
from skewscope.sources.format import SNIFF_BYTES, Origin
from tests.sources.formats.reading import SAMPLES, sample, samples

FORMATS = all_formats()
RECORDED = ("counters", "engine", "kmsg", "metrics", "nccl", "torch")
ids = [f.kind for f in FORMATS]


def read(format_, data):
    origin = Origin(Directory(), 0, "n1", at_ns=10**18)
    rows = 0
    for tables in format_.read(io.BufferedReader(io.BytesIO(data)), origin):
        for name, table in tables.items():
            assert isinstance(table, Table)
            assert name == table.schema.name
            assert table.schema in READ
            rows += len(table)
    assert all("\n" not in note for note in origin.notes)
    return rows


def recorded():
    """The recorded files that a format reads, of each set of ranks two."""
    root = Path(SAMPLES)
    for path in sorted(p for folder in RECORDED for p in (root / folder).rglob("*") if p.is_file()):
        name = path.relative_to(root).as_posix()
        if not path.name.startswith("_dump_") or path.name in {"_dump_9", "_dump_12"}:
            yield name


def test_kinds_and_descriptions_differ():
    assert len({f.kind for f in FORMATS}) == len({f.doc for f in FORMATS}) == len(FORMATS) > 16


@pytest.mark.parametrize("format_", FORMATS, ids=ids)
def test_nothing_gives_nothing(format_):
    assert format_.sure(b"", "") == 0
    assert read(format_, b"") == 0


@pytest.mark.parametrize("format_", FORMATS, ids=ids)
@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_taken(format_, data):
    assert format_.sure(data, "n1.log") in {0, 1, 2, 3}
    read(format_, data)


@samples
def test_a_recorded_file_is_told_by_one_format_alone():
    told = 0
    for name in recorded():
        head = sample(name)[:SNIFF_BYTES]
        sure = sorted((f.sure(head, name) for f in FORMATS), reverse=True)
        assert sure[0] == 0 or sure[0] > sure[1], name
        told += sure[0] > 0
    assert told > 30


@samples
def test_recorded_files_cut_off_and_damaged():
    chance = random.Random(7)
    for name in recorded():
        data = sample(name)[: 1 << 16]
        format_ = tell(data[:SNIFF_BYTES], name)
        if format_ is None:
            continue
        whole = read(format_, data)
        for _ in range(4):
            cut = data[: chance.randrange(len(data))]
            assert read(format_, cut) <= whole + 20, name
            torn = bytearray(data)
            for _ in range(20):
                torn[chance.randrange(len(torn))] = chance.randrange(256)
            read(format_, bytes(torn))
