import gzip
from pathlib import Path

import pytest

from skewscope.core.directory import Directory, Names
from skewscope.core.schemas import COUNTERS
from skewscope.core.tables import Heard
from skewscope.sources import documents
from skewscope.sources.documents import Document, DocumentError, bare_name, host_of, stamp_ns, tell
from skewscope.sources.format import Format, RowList, lines


def _read(stream, origin):
    rows = RowList(COUNTERS)
    for number, text in lines(stream, origin):
        name, _, value = text.partition(" ")
        if not value:
            continue
        rows.add(
            ts_ns=origin.at_ns + number,
            line=number,
            name=origin.directory.names.id(name),
            value=float(value),
        )
    yield rows.take()


WIDE = Format("pairs", "a name and a number a line", lambda head, name: 2 * head.startswith(b"a "), _read)
NARROW = Format("a pairs", "the same about a1", lambda head, name: 3 * head.startswith(b"a 1"), _read)


@pytest.fixture(autouse=True)
def _two_formats(monkeypatch):
    monkeypatch.setattr(documents, "all_formats", lambda: (WIDE, NARROW))


def test_the_surest_format_reads():
    assert tell(b"a 1\n", "x") is NARROW
    assert tell(b"a 2\n", "x") is WIDE
    assert tell(b"b 2\n", "x") is None


@pytest.mark.parametrize("packed", [False, True])
def test_a_document_yields_tables_and_counts_them(tmp_path, packed):
    path = tmp_path / ("n1.1700000000.txt" + ".gz" * packed)
    data = b"a 2\nb 3.5\na 4\n"
    path.write_bytes(gzip.compress(data) if packed else data)
    directory = Directory()
    document = Document(path, directory)
    batches = list(document.batches())
    document.close()
    assert document.kind == "pairs"
    assert isinstance(batches[0], Heard)
    assert batches[0].reached_ns == 1_700_000_000_000_000_003
    assert batches[0]["counters"]["value"].tolist() == [2.0, 3.5, 4.0]
    assert document.stats.rows == {"counters": 3}
    assert document.stats.names == {"a": 2, "b": 1}
    assert directory.sources == [str(path)]
    assert document.stats.notes == []


def test_what_cannot_be_read_is_one_line(tmp_path):
    empty, other, cut = tmp_path / "empty", tmp_path / "other", tmp_path / "cut.gz"
    empty.write_bytes(b"")
    other.write_bytes(b"\x00\x01\x02")
    cut.write_bytes(gzip.compress(b"a 2\n" * 9000)[:-20])
    for path, why in ((empty, "empty file"), (other, "not a format"), (tmp_path / "none", "cannot read")):
        with pytest.raises(DocumentError, match=why):
            Document(path, Directory())
    document = Document(cut, Directory())
    rows = sum(len(t["counters"]) for t in document.batches())
    document.close()
    assert 0 < rows <= 9000
    assert any("the rest cannot be read" in note for note in document.stats.notes)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("1700000000.prom", 1_700_000_000_000_000_000),
        ("1700000000.25.prom", 1_700_000_000_250_000_000),
        ("1700000000123.prom", 1_700_000_000_123_000_000),
        ("1700000000123456789.prom", 1_700_000_000_123_456_789),
        ("vllm_0.19.0_rtx4090.prom", 7),
    ],
)
def test_time_in_a_file_name(name, expected):
    assert stamp_ns(name, 7) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("case/metrics/10.0.0.3:8000/1700000000.prom", "10.0.0.3:8000"),
        ("case/metrics/10.0.0.3:8000/1700000000.25.prom.gz", "10.0.0.3:8000"),
        ("anywhere/node7/1700000000123.prom", "node7"),
        ("case/counters/node7.txt", "node7"),
        ("case/counters/node7/net/eth0.txt", "node7"),
        ("case/logs/node7.kmsg.log.gz", "node7"),
        ("case/metrics/vllm_0.19.prom", ""),
        ("anywhere/vllm.prom", ""),
    ],
)
def test_host_of_a_file_by_its_place(path, expected):
    assert host_of(Path(path)) == expected


def test_bare_name(tmp_path):
    assert bare_name(tmp_path / "a.prom.gz") == "a.prom"


def test_names_are_bounded():
    names = Names(limit=3)
    assert [names.id(t) for t in ("", "a", "b", "a", "c")] == [0, 1, 2, 1, 0]
    assert names[2] == "b"
    assert len(names) == 3
    assert repr(names) == "Names(['a', 'b'])"
    assert names != Names()
    assert Names() == Names()


def test_a_file_is_open_only_while_it_is_read(tmp_path):
    path = tmp_path / "1700000000.txt"
    path.write_bytes(b"a 2\n")
    documents_ = [Document(path, Directory()) for _ in range(3000)]  # more than a process may open
    assert all(d.stamped for d in documents_)
    assert documents_[0].position() == 0
    list(documents_[0].batches())
    assert documents_[0].position() == documents_[0].size == 4


def test_a_document_found_in_a_folder_must_be_sure(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_bytes(b"a 2\n")
    assert documents.looks_like_document(path)
    monkeypatch.setattr(
        documents, "all_formats", lambda: (Format("maybe", "a guess", lambda head, name: 1, _read),)
    )
    assert not documents.looks_like_document(path)
    assert Document(path, Directory()).kind == "maybe"


def test_what_tells_no_time_says_so(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_bytes(b"a 2\n")

    def plain(stream, origin):
        rows = RowList(COUNTERS)
        rows.add(ts_ns=origin.at_ns, value=1.0)
        yield rows.take()

    monkeypatch.setattr(documents, "all_formats", lambda: (Format("p", "d", lambda head, name: 2, plain),))
    document = Document(path, Directory())
    list(document.batches())
    assert document.stats.notes == ["tells no time: taken to be as old as the file"]
