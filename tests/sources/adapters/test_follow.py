import os

import pytest

from skewscope.core.directory import Directory
from skewscope.sources.adapters.follow import Follow, KernelRing, LogFile, dated
from skewscope.sources.formats import kernel_log, nccl_log
from tests.sources.formats.reading import rows_of

LINE = "w0:1:1 [0] NCCL INFO Using network {}\n"


def write(path, text, mode="a"):
    with path.open(mode, encoding="utf-8") as file:
        file.write(text)


def test_lines_are_given_when_they_are_whole(tmp_path):
    path = tmp_path / "log"
    write(path, "old\n")
    log = LogFile(path)
    assert log.lines() == b""
    write(path, "one\ntw")
    assert log.lines() == b"one\n"
    write(path, "o\n")
    assert log.lines() == b"two\n"
    log.close()


def test_a_file_that_is_replaced_is_read_to_its_end_and_then_the_new_one(tmp_path):
    path = tmp_path / "log"
    write(path, "a\n")
    log = LogFile(path, from_start=True)
    assert log.lines() == b"a\n"
    write(path, "b\n")
    path.rename(tmp_path / "log.1")
    assert log.lines() == b"b\n"
    write(path, "c\n", "w")
    assert log.lines() == b"c\n"
    write(path, "d\n", "w")
    assert log.lines() in {b"", b"d\n"}  # as long as before: it cannot be told from the old one by size
    os.truncate(path, 0)
    log.lines()
    write(path, "e\n")
    assert log.lines() == b"e\n"
    log.close()


def test_a_file_that_is_not_there_yet(tmp_path):
    log = LogFile(tmp_path / "log")
    assert log.lines() == b""
    write(tmp_path / "log", "first\n")
    log.lines()
    write(tmp_path / "log", "next\n")
    assert log.lines().endswith(b"next\n")
    log.close()


def test_events_of_what_was_added_with_their_lines(tmp_path):
    path, directory = tmp_path / "nccl.log", Directory()
    write(path, "")
    follow = Follow(str(path), LogFile(path), nccl_log.FORMAT, directory)
    follow.once()
    write(path, "engine says hello\n" + LINE.format("IB"))
    first = rows_of(directory, follow.once())
    write(path, LINE.format("Socket"))
    second = rows_of(directory, follow.once())
    follow.close()
    assert [(r["line"], r["fields"]["network"]) for r in first + second] == [(2, "IB"), (3, "Socket")]
    assert first[0]["ts_ns"] <= second[0]["ts_ns"]


def test_a_record_of_the_kernel_gets_the_time_of_the_wall_clock():
    record = b"6,3973,227996636,-;NVRM: Xid (PCI:0000:91:00): 79, x\n SUBSYSTEM=pci\n"
    line = dated(record, 1_700_000_000 * 10**9)
    assert line == b"kern  :x     : 2023-11-14T22:17:07,996636+00:00 NVRM: Xid (PCI:0000:91:00): 79, x\n"
    assert dated(b"no record", 0) == b""


def test_the_kernel_ring_of_this_machine(tmp_path):
    try:
        ring = KernelRing(from_start=True)
        lines = ring.lines()
    except OSError as error:
        pytest.skip(f"/dev/kmsg may not be read here: {error.strerror}")
    if not lines:
        pytest.skip("the kernel said nothing")
    assert kernel_log.FORMAT.sure(lines[:4000], "kmsg") == 2
    ring.close()
