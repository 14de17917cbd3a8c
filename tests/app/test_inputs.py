"""Files, folders and globs."""

import gzip
import lzma
import os
from pathlib import Path

from skewscope.app.inputs import expand
from skewscope.sources.unpack import STANDARD_INPUT, looks_like_capture

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
        "nothing in this folder that skewscope reads",
        "no file matches",
    ]


def test_a_file_under_two_names_is_read_once(tmp_path):
    (tmp_path / "a.pcap").write_bytes(PCAP)
    (tmp_path / "b.pcap").symlink_to(tmp_path / "a.pcap")
    (tmp_path / "c.pcap").hardlink_to(tmp_path / "a.pcap")
    assert expand([tmp_path]).files == [tmp_path / "a.pcap"]
    assert len(expand([tmp_path / "b.pcap", tmp_path / "a.pcap", f"{tmp_path}/./c.pcap"]).files) == 1


def test_a_dash_is_standard_input():
    assert expand(["-", "-"]).files == [STANDARD_INPUT]


def test_loops_of_links_end(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "up").symlink_to(tmp_path)
    (tmp_path / "a.pcap").write_bytes(PCAP)
    assert expand([tmp_path]).files == [tmp_path / "a.pcap"]
    assert expand([tmp_path / "loop"]).problems == [f"{tmp_path}/loop: no such file or folder"]


def test_pipes_in_folders_are_left_alone(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    assert expand([tmp_path / "pipe"]).files == [tmp_path / "pipe"]
    (tmp_path / "a.pcap").write_bytes(PCAP)
    assert expand([tmp_path]).files == [tmp_path / "a.pcap"]


def test_odd_names_give_a_line_each(tmp_path, monkeypatch):
    long, broken, nul = "x" * 5000, f"{tmp_path}/**x*[", "a\0b"
    found = expand([long, broken, nul])
    assert not found.files
    assert len(found.problems) == 3
    assert all("\n" not in p for p in found.problems)


def test_what_may_not_be_entered_is_told(tmp_path, monkeypatch):
    def refuse(self):
        raise PermissionError(13, "Permission denied", str(self))

    (tmp_path / "a.pcap").write_bytes(PCAP)

    def walk(path, onerror):
        onerror(PermissionError(13, "Permission denied", f"{path}/closed"))
        return iter([(str(path), [], ["a.pcap"])])

    monkeypatch.setattr(os, "walk", walk)
    found = expand([tmp_path])
    assert found.files == [tmp_path / "a.pcap"]
    assert found.problems == [f"{tmp_path}/closed: cannot read: Permission denied"]
    monkeypatch.setattr(Path, "is_dir", refuse)
    assert expand(["a/b"]).problems == ["a/b: cannot read: Permission denied"]


def test_a_file_that_vanishes_is_told_of_when_it_is_opened(tmp_path):
    (tmp_path / "a.pcap").write_bytes(PCAP)
    found = expand([tmp_path])
    (tmp_path / "a.pcap").unlink()
    assert found.bytes_total == 0


def test_a_sys_tree_in_a_folder_is_one_input(tmp_path):
    counters = tmp_path / "n1" / "sys" / "class" / "infiniband" / "mlx5_0" / "ports" / "1" / "counters"
    counters.mkdir(parents=True)
    (counters / "port_rcv_data").write_text("1\n")
    (tmp_path / "n1" / "dmesg.log").write_text("[    1.000000] usb 1-1: new device\n")
    (tmp_path / "a.pcap").write_bytes(PCAP)
    found = expand([tmp_path])
    assert found.files == [tmp_path / "a.pcap", tmp_path / "n1" / "dmesg.log", tmp_path / "n1" / "sys"]
    assert not found.problems
