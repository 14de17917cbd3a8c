"""Files, folders and globs."""

import gzip
import lzma
import os

from skewscope.app.inputs import expand, looks_like_capture

PCAP = b"\xd4\xc3\xb2\xa1" + bytes(20)
PCAPNG = b"\x0a\x0d\x0d\x0a" + bytes(24)


def test_recognises_captures_by_content(tmp_path):
    (tmp_path / "a").write_bytes(PCAP)
    (tmp_path / "b").write_bytes(PCAPNG)
    (tmp_path / "c").write_bytes(gzip.compress(PCAP))
    (tmp_path / "d").write_bytes(lzma.compress(PCAPNG))
    assert all(looks_like_capture(tmp_path / n) for n in "abcd")


def test_refuses_other_files(tmp_path):
    for name, content in {
        "e": b"",
        "f": b"hello world",
        "g": gzip.compress(b"hello"),
        "h": b"\x1f\x8b\x08",
    }.items():
        (tmp_path / name).write_bytes(content)
        assert not looks_like_capture(tmp_path / name)
    assert not looks_like_capture(tmp_path / "missing")


def test_a_folder_gives_its_captures_in_order(tmp_path):
    (tmp_path / "deep").mkdir()
    (tmp_path / "b.pcap").write_bytes(PCAP)
    (tmp_path / "deep" / "a.pcap.gz").write_bytes(gzip.compress(PCAP))
    (tmp_path / "truth.json").write_text("{}")
    (tmp_path / ".hidden.pcap").write_bytes(PCAP)
    found = expand([tmp_path])
    assert [p.name for p in found.files] == ["b.pcap", "a.pcap.gz"]
    assert not found.problems
    assert found.bytes_total > 0


def test_each_file_once(tmp_path):
    (tmp_path / "a.pcap").write_bytes(PCAP)
    found = expand([tmp_path / "a.pcap", tmp_path, str(tmp_path / "*.pcap")])
    assert len(found.files) == 1


def test_a_named_file_is_taken_whatever_it_holds(tmp_path):
    (tmp_path / "notes.txt").write_text("hello")
    assert expand([tmp_path / "notes.txt"]).files == [tmp_path / "notes.txt"]


def test_globs_relative_and_absolute(tmp_path, monkeypatch):
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "n1.pcap").write_bytes(PCAP)
    monkeypatch.chdir(tmp_path)
    assert [os.fspath(f) for f in expand(["x/n*.pcap"]).files] == ["x/n1.pcap"]
    assert len(expand([f"{tmp_path}/**/*.pcap"]).files) == 1


def test_says_what_names_nothing(tmp_path):
    (tmp_path / "empty").mkdir()
    found = expand([tmp_path / "missing.pcap", tmp_path / "empty", f"{tmp_path}/*.nothing"])
    assert not found.files
    assert [p.split(": ")[1] for p in found.problems] == [
        "no such file or folder",
        "no captures in this folder",
        "no file matches",
    ]
