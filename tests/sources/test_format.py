import io

from skewscope.core.directory import Directory
from skewscope.core.schemas import COUNTERS
from skewscope.sources import format as format_
from skewscope.sources.format import Origin, RowList, lines


def test_rows_become_a_table_and_start_anew() -> None:
    rows = RowList(COUNTERS)
    rows.add(ts_ns=5, value=1.5)
    rows.add(ts_ns=6, value=2.5)
    table = rows.take()["counters"]
    assert table["ts_ns"].tolist() == [5, 6]
    assert table["value"].tolist() == [1.5, 2.5]
    assert len(rows) == 0
    assert len(rows.take()["counters"]) == 0


def test_lines_are_numbered_and_a_line_too_long_is_told_of(monkeypatch) -> None:
    monkeypatch.setattr(format_, "LINE_BYTES", 8)
    origin = Origin(Directory(), 0)
    got = list(lines(io.BytesIO(b"one\r\n" + b"x" * 30 + b"\n\xff\nlast"), origin))
    assert got == [(1, "one"), (3, "�"), (4, "last")]
    assert origin.notes == ["1 lines longer than 0 MiB were left out"]


def test_what_an_input_is_about() -> None:
    directory = Directory()
    assert Origin(directory, 0, "node1.prom", host="10.0.0.3").about("label") == "10.0.0.3"
    assert Origin(directory, 0, "node1.prom").about("", "label") == "label"
    assert Origin(directory, 0, "node1.prom").about() == "node1"
    assert Origin(directory, 0).about() == "unknown"


def test_names_outside_the_table_are_counted_within_a_limit(monkeypatch) -> None:
    monkeypatch.setattr(format_, "UNMAPPED_NAMES", 2)
    origin = Origin(Directory(), 0)
    for name in "aabcd":
        origin.unknown(name)
    assert origin.unmapped == {"a": 2, "b": 1, "others": 2}
