import io
import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skewscope.core.directory import Directory
from skewscope.core.schemas import METRICS
from skewscope.sources import protobufs
from skewscope.sources.documents import tell
from skewscope.sources.format import Origin
from skewscope.sources.formats.remote_write import FORMAT, MAX_BYTES, read, unsnappy

pytest.importorskip("google.protobuf", reason="protobuf (the extra `metrics`) is not installed")

LABELS = {"__name__": "node_load1", "instance": "10.0.0.3:9100", "job": "n"}


def packed(data):
    return bytes(pa.Codec("snappy").compress(data))


def version1(series):
    request = protobufs.message("WriteRequest")()
    for labels, samples in series:
        made = request.timeseries.add()
        for name, value in sorted(labels.items()):
            made.labels.add(name=name, value=value)
        for ms, value in samples:
            made.samples.add(timestamp=ms, value=value)
    return request.SerializeToString()


def version2(series):
    request = protobufs.message("WriteRequest")()
    request.symbols.append("")
    for labels, samples in series:
        made = request.timeseries2.add()
        for pair in sorted(labels.items()):
            for text in pair:
                request.symbols.append(text)
                made.labels_refs.append(len(request.symbols) - 1)
        for ms, value in samples:
            made.samples.add(timestamp=ms, value=value)
    return request.SerializeToString()


def rows(data):
    directory = Directory()
    origin = Origin(directory, 0, fallback="10.9.9.9")
    table = next(iter(read(io.BytesIO(data), origin)), {}).get("metrics", METRICS.empty())
    found = [
        (directory.entities[int(e)], int(ts), float(v))
        for e, ts, v in zip(table["entity"], table["ts_ns"], table["value"], strict=True)
    ]
    return found, origin


SERIES = [
    (LABELS, [(1_700_000_001_000, 2.0), (1_700_000_000_000, 1.0)]),
    ({"__name__": "odd", "a": "b"}, [(1, 1)]),
]


@pytest.mark.parametrize("made", [version1(SERIES), version2(SERIES)], ids=["v1", "v2"])
@pytest.mark.parametrize("pack", [packed, bytes], ids=["snappy", "plain"])
def test_both_versions(made, pack):
    data = pack(made)
    assert tell(data, "1700000000.rw") is FORMAT
    found, origin = rows(data)
    assert found == [
        ("10.0.0.3", 1_700_000_000_000_000_000, 1.0),
        ("10.0.0.3", 1_700_000_001_000_000_000, 2.0),
    ]
    assert origin.unmapped == {"odd": 1}


def test_who_pushed_is_who_it_is_about_only_where_nothing_else_says_so():
    assert rows(version1([({"__name__": "node_load1"}, [(5, 1.0)])]))[0][0][0] == "10.9.9.9"


def test_a_stale_mark_is_not_a_number():
    (found,), _ = rows(packed(version1([(LABELS, [(5, math.nan)])])))
    assert math.isnan(found[2])


def test_impossible_times_and_references():
    request = protobufs.message("WriteRequest")()
    request.timeseries2.add(labels_refs=[7, 9]).samples.add(timestamp=5, value=1)
    assert rows(request.SerializeToString())[0] == []
    found, origin = rows(packed(version1([(LABELS, [(-5, 1.0), (1 << 62, 1.0)])])))
    assert found == []
    assert origin.notes == ["2 samples have no possible time"]


def test_bombs_and_damage_are_refused():
    for bad in (b"", b"\xff" * 8, b"\x05\x01", b"\xff\xff\xff\x7f" + b"\0" * 100, packed(b"x" * 99)[:-5]):
        with pytest.raises(ValueError, match=r"snappy|MiB"):
            unsnappy(bad)
    assert MAX_BYTES < 1 << 30


@given(st.binary(max_size=300))
def test_any_bytes_are_read_without_an_error(data):
    FORMAT.sure(data, "x")
    rows(data)
    rows(packed(data) if data else data)


def test_without_protobuf_it_says_what_to_install(monkeypatch):
    def missing(name, data):
        raise ImportError

    monkeypatch.setattr(protobufs, "parse", missing)
    found, origin = rows(packed(version1(SERIES)))
    assert found == []
    assert origin.notes == ['protobuf is not installed: pip install "skewscope[metrics]"']
