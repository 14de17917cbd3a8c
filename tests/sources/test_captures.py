"""Capture files as people have them: packed, cut, damaged, unreadable. Nothing raises a traceback."""

import bz2
import gzip
import lzma
import struct
from pathlib import Path

import numpy as np
import pytest

from skewscope.core.directory import Directory
from skewscope.sources import captures, unpack
from skewscope.sources.captures import Capture, CaptureError, open_captures
from skewscope.wire import build
from skewscope.wire.packets import PacketParser
from skewscope.wire.pcapng_write import PcapngWriter

MAC_A, MAC_B = b"\x02SYN\x00\x01", b"\x02SYN\x00\x02"
A, B = bytes([10, 1, 2, 3]), bytes([10, 1, 2, 4])
START = 1_700_000_000_000_000_000
COUNT = 50


def records(count=COUNT):
    lane = build.Lane(MAC_A, MAC_B, A, B, 40000, 8000)
    noise = np.random.default_rng(3)
    for i in range(count):
        data = noise.bytes(100)
        frame = lane.frame(i, 1000 + 100 * i, 1, build.ACK, 64, i, 0, data)
        yield START + i * 1_000_000, frame, len(frame)


def capture(count=COUNT):
    return build.capture(records(count), 65535)


def read(path: Path):
    """Return (packets tables joined column-wise, the closed capture)."""
    directory = Directory()
    one = Capture(path, directory, PacketParser(directory))
    tables = [t["packets"] for t in one.batches()]
    one.close()
    return {n: np.concatenate([t[n] for t in tables]) for n in ("ts_ns", "frame", "payload_at", "tap")}, one


def reason(path: Path) -> str:
    with pytest.raises(CaptureError) as caught:
        Capture(path, Directory(), PacketParser(Directory()))
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert "\n" not in text
    return text.removeprefix(f"{path}: ")


@pytest.mark.parametrize(
    ("name", "pack"),
    [("a.pcap", bytes), ("a.pcap.gz", gzip.compress), ("a.pcap.xz", lzma.compress), ("a.bz2", bz2.compress)],
)
def test_plain_and_packed_files_give_the_same(tmp_path, name, pack):
    path = tmp_path / name
    path.write_bytes(pack(capture()))
    packets, one = read(path)
    assert packets["ts_ns"].tolist() == [START + i * 1_000_000 for i in range(COUNT)]
    assert packets["frame"].tolist() == list(range(1, COUNT + 1))
    assert set(packets["payload_at"].tolist()) == {-1}
    assert one.stats.notes == []
    assert (one.stats.packets, one.stats.first_ns, one.stats.last_ns) == (COUNT, START, START + 49_000_000)


def test_the_name_of_a_file_does_not_matter(tmp_path):
    path = tmp_path / "capture.txt"
    path.write_bytes(gzip.compress(capture()))
    assert len(read(path)[0]["ts_ns"]) == COUNT


@pytest.mark.parametrize("size", [64, 200, 1 << 13])
def test_any_block_size_gives_the_same(tmp_path, monkeypatch, size):
    path = tmp_path / "a.pcap"
    path.write_bytes(capture())
    monkeypatch.setattr(captures, "BLOCK_BYTES", size)
    assert read(path)[0]["frame"].tolist() == list(range(1, COUNT + 1))


def test_few_records_at_a_time_give_the_same(tmp_path, monkeypatch):
    path = tmp_path / "a.pcap"
    path.write_bytes(capture())
    monkeypatch.setattr(captures, "MAX_RECORDS", 7)
    assert read(path)[0]["frame"].tolist() == list(range(1, COUNT + 1))


def test_several_gzip_members_are_one_file(tmp_path):
    """Rotated captures are often joined with cat."""
    data = capture()
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(data[:900]) + gzip.compress(data[900:]))
    assert len(read(path)[0]["ts_ns"]) == COUNT


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "empty file"),
        (gzip.compress(b""), "empty file"),
        (b"hello, world: this is a log file, not a capture\n", "not a capture file (no pcap magic number)"),
        (gzip.compress(b"a log file\n" * 9), "not a capture file (no pcap magic number)"),
        (b"\x0a\x0d\x0d\x0a" + b"\0" * 40, "after frame 0: a section header without byte order"),
        (b"snoop\0\0\0" + b"\0" * 40, "a snoop file; convert it with `editcap -F nsecpcap`"),
        (b"PK\x03\x04" + b"\0" * 40, "a zip archive; unpack it first"),
        (build.capture_header(65535)[:20], "ends within its file header"),
        (build.capture_header(65535, 105), "link type 105 is not read (Ethernet is 1)"),
        (
            PcapngWriter().header() + PcapngWriter().interface("wlan0", link=127),
            "link type 127 is not read (Ethernet is 1)",
        ),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_what_cannot_be_read_says_why(tmp_path, data, text):
    path = tmp_path / "a.pcap"
    path.write_bytes(data)
    assert reason(path) == text


def test_damage_before_the_first_byte(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(capture())[:12])
    assert reason(path).startswith("cannot read: ")
    path.write_bytes(lzma.compress(capture())[:30])
    assert reason(path).startswith("cannot read: ")


def test_paths_that_are_no_files(tmp_path, monkeypatch):
    assert reason(tmp_path) == "cannot read: Is a directory"
    assert reason(tmp_path / "absent.pcap") == "cannot read: No such file or directory"

    def refuse(self, *_, **__):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)
    assert reason(tmp_path / "a.pcap") == "cannot read: Permission denied"


def test_a_header_alone_holds_no_packets(tmp_path):
    path = tmp_path / "a.pcap"
    path.write_bytes(build.capture_header(65535))
    packets, one = read(path)
    assert len(packets["ts_ns"]) == 0
    assert (one.stats.packets, one.stats.notes) == (0, [])


@pytest.mark.parametrize("cut", [1, 50, 166, 180])
def test_a_cut_last_record_costs_that_record_only(tmp_path, cut):
    path = tmp_path / "a.pcap"
    path.write_bytes(capture()[:-cut])
    packets, one = read(path)
    size = 16 + 66 + 100
    assert len(packets["ts_ns"]) == COUNT - 1
    assert one.stats.notes == [
        f"the last record is cut off ({size - cut} bytes): truncated, or still being written"
    ]


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_cut_compressed_file_keeps_every_whole_packet_before_the_cut(tmp_path, pack):
    data = capture(2000)
    packed = pack(data)
    path = tmp_path / "a"
    path.write_bytes(packed[: len(packed) // 2])
    packets, one = read(path)
    assert len(packets["ts_ns"]) > 800
    assert packets["frame"].tolist() == list(range(1, len(packets["frame"]) + 1))
    assert any(n.startswith("compressed data ends early or is damaged (") for n in one.stats.notes)


def test_a_bad_checksum_at_the_end_loses_nothing(tmp_path):
    packed = bytearray(gzip.compress(capture()))
    packed[-6] ^= 0xFF
    path = tmp_path / "a.gz"
    path.write_bytes(bytes(packed))
    packets, one = read(path)
    assert len(packets["ts_ns"]) == COUNT
    assert len(one.stats.notes) == 1


def test_rubbish_behind_the_compressed_data_loses_nothing(tmp_path):
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(capture()) + b"rubbish")
    packets, one = read(path)
    assert len(packets["ts_ns"]) == COUNT
    assert len(one.stats.notes) == 1


def test_an_impossible_length_in_the_middle_keeps_what_came_before(tmp_path):
    data = bytearray(capture())
    at = 24 + 20 * (16 + 166) + 8
    data[at : at + 4] = struct.pack("<I", 0x7FFFFFFF)
    path = tmp_path / "a.pcap"
    path.write_bytes(bytes(data))
    packets, one = read(path)
    assert len(packets["ts_ns"]) == 20
    assert one.stats.notes == ["record 21 has an impossible length: the rest of the file was left out"]


def test_a_disk_that_fails_in_the_middle_keeps_what_came_before(tmp_path, monkeypatch):
    path = tmp_path / "a.pcap"
    path.write_bytes(capture())
    directory = Directory()
    plain = unpack.Stream.readinto

    def fail_late(self, view):
        if self.position >= 2000:
            raise OSError(5, "Input/output error")
        return plain(self, view[: 2000 - self.position])

    monkeypatch.setattr(unpack.Stream, "readinto", fail_late)
    one = Capture(path, directory, PacketParser(directory))
    tables = list(one.batches())
    one.close()
    assert sum(len(t["packets"]) for t in tables) == 10
    assert one.stats.notes[-1] == "cannot be read to its end (Input/output error)"


def test_steps_back_in_time_and_odd_frames_are_counted(tmp_path):
    rows = list(records(4))
    rows[2] = (START - 5, *rows[2][1:])
    rows.append((START, b"\0" * 14 + b"not ip", 20))
    path = tmp_path / "a.pcap"
    path.write_bytes(build.capture(rows, 65535))
    _, one = read(path)
    assert one.stats.backwards == 2
    assert one.stats.first_ns == START - 5
    assert one.stats.faults == {0: 4, 3: 1}


def test_taps_are_numbered_over_readable_files_only(tmp_path):
    good = [tmp_path / "one.pcap", tmp_path / "two.pcap"]
    for path in good:
        path.write_bytes(capture(3))
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(b"x" * 40)
    directory, told = Directory(), []
    opened = open_captures([good[0], bad, good[1]], directory, told.append)
    assert [t.path for t in directory.taps] == [str(p) for p in good]
    assert [c.tap.index for c in opened] == [0, 1]
    assert told == [f"{bad}: not a capture file (no pcap magic number)"]
    assert [set(t["packets"]["tap"].tolist()) for t in opened[1].batches()] == [{1}, set()]
    for one in opened:
        one.close()
        assert one.position() == one.path.stat().st_size


def test_position_grows_with_what_was_read(tmp_path):
    path = tmp_path / "a.pcap"
    path.write_bytes(capture())
    directory = Directory()
    one = Capture(path, directory, PacketParser(directory))
    for _ in one.batches():
        pass
    assert one.position() == path.stat().st_size
    one.close()
