"""Captures in all formats, with several interfaces, wild times and damage."""

import bz2
import contextlib
import gzip
import importlib
import importlib.util
import lzma
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.core.directory import Directory
from skewscope.core.tables import Table
from skewscope.sources import captures
from skewscope.sources.captures import Capture, CaptureError
from skewscope.wire import build
from skewscope.wire.packets import PacketParser
from skewscope.wire.pcapng_write import PcapngWriter
from tests.sources.test_captures import MAC_A, MAC_B, START, A, B, capture, read, records


def every_table(path: Path):
    """Return the columns of all tables of a capture, joined, and the notes."""
    directory = Directory()
    one = Capture(path, directory, PacketParser(directory))
    batches = list(one.batches())
    one.close()
    out = {}
    for name in batches[0]:
        whole = Table.concat(batches[0][name].schema, [b[name] for b in batches])
        out |= {(name, c): v.tolist() for c, v in whole.columns.items()}
    return out, one.stats.notes


def web_rows(count=60):
    """Yield records of one HTTP response in chunks, so that the framers have work too."""
    lane = build.Lane(MAC_A, MAC_B, A, B, 40000, 8000)
    back = build.Lane(MAC_B, MAC_A, B, A, 8000, 40000)
    ask = b"POST /v1/completions HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n"
    yield START, lane.frame(0, 1, 1, build.ACK, 64, 0, 0, ask), 66 + len(ask)
    seq = 1
    for i in range(count):
        data = head if i == 0 else build.http_chunk(b"data: token %d\n\n" % i)
        frame = back.frame(i, seq, 1 + len(ask), build.ACK, 64, i, 0, data)
        seq += len(data)
        yield START + (i + 1) * 1_000_000, frame, len(frame)


def as_pcapng(rows, resolution=9):
    writer = PcapngWriter()
    data = writer.header() + writer.interface("eth0", snap_length=65535, resolution=resolution)
    return data + b"".join(writer.packet(*r, comment="c" * (r[0] // 10**6 % 3)) for r in rows)


PACKS = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}
if importlib.util.find_spec("zstandard"):
    PACKS["zst"] = importlib.import_module("zstandard").compress


def test_one_capture_in_all_formats_gives_identical_tables(tmp_path):
    plain = tmp_path / "a.pcap"
    plain.write_bytes(build.capture(web_rows(), 65535))
    expected, notes = every_table(plain)
    assert len(expected["http", "ts_ns"]) > 50
    assert notes == []
    for name, data in {"pcap": plain.read_bytes(), "pcapng": as_pcapng(web_rows())}.items():
        for ending, pack in {"": bytes, **PACKS}.items():
            path = tmp_path / f"b.{name}.{ending}"
            path.write_bytes(pack(data))
            assert every_table(path) == (expected, []), path.name


@pytest.mark.parametrize("size", [100, 999, 1 << 12])
def test_any_block_size_gives_the_same_pcapng_tables(tmp_path, monkeypatch, size):
    path = tmp_path / "a.pcapng"
    path.write_bytes(as_pcapng(web_rows()))
    expected = every_table(path)
    monkeypatch.setattr(captures, "BLOCK_BYTES", size)
    monkeypatch.setattr(captures, "MAX_RECORDS", 1 + size % 40)
    assert every_table(path) == expected


def test_each_interface_is_a_tap_with_streams_of_its_own(tmp_path):
    """The same response passes two interfaces: reassembled once at each, not taken for copies."""
    writer = PcapngWriter()
    data = writer.header() + writer.interface("eth0") + writer.interface("eth1")
    for ts, frame, size in web_rows():
        data += writer.packet(ts, frame, size, 0) + writer.packet(ts + 1000, frame, size, 1)
    path = tmp_path / "a.pcapng"
    path.write_bytes(data)
    found, notes = every_table(path)
    once = build.capture(web_rows(), 65535)
    plain = tmp_path / "a.pcap"
    plain.write_bytes(once)
    elements = len(every_table(plain)[0]["http", "ts_ns"])
    assert found["http", "tap"].count(0) == found["http", "tap"].count(1) == elements
    assert found["packets", "frame"] == list(range(1, 123))
    assert found["packets", "tap"] == [0, 1] * 61
    assert sorted(found["http", "ts_ns"]) == found["http", "ts_ns"]
    assert notes == ["2 interfaces, each a tap of its own: eth0 (61 packets), eth1 (61 packets)"]


def test_an_interface_that_cannot_be_read_costs_its_own_frames_only(tmp_path):
    writer = PcapngWriter()
    data = writer.header() + writer.interface("wlan0", link=127) + writer.interface("eth0")
    for ts, frame, size in records(5):
        data += writer.packet(ts, bytes(40), 40, 0) + writer.packet(ts, frame, size, 1, direction=2)
    path = tmp_path / "a.pcapng"
    path.write_bytes(data)
    found, notes = every_table(path)
    assert found["packets", "frame"] == [2, 4, 6, 8, 10]
    assert found["packets", "direction"] == [2] * 5
    assert notes == ["5 frames were left out: link type 127 is not read"]


def test_the_parser_is_told_the_link_types(tmp_path):
    asked = []

    class Spy(PacketParser):
        def parse(self, buf, ts, at, captured, wire, tap, frame, links=1):
            asked.append(links if isinstance(links, int) else links.tolist())
            return super().parse(buf, ts, at, captured, wire, tap, frame)

    path = tmp_path / "a.pcap"
    path.write_bytes(build.capture_header(65535, 276) + capture(1)[24:])
    writer = PcapngWriter()
    mixed = tmp_path / "b.pcapng"
    data = writer.header() + writer.interface("any", link=113) + writer.interface("tun0", link=12)
    mixed.write_bytes(data + writer.packet(START, bytes(60), 60, 0) + writer.packet(START, bytes(60), 60, 1))
    for file in (path, mixed):
        directory = Directory()
        one = Capture(file, directory, Spy(directory))
        list(one.batches())
        one.close()
    assert asked == [276, [113, 101]]


def test_one_wild_time_neither_stretches_nor_moves_the_capture(tmp_path):
    rows = list(records())
    rows[20] = (4_000_000_000_000_000_000, *rows[20][1:])
    path = tmp_path / "a.pcap"
    path.write_bytes(build.capture(rows, 65535))
    packets, one = read(path)
    assert packets["ts_ns"][20] == packets["ts_ns"][19]
    assert packets["ts_ns"][21] == START + 21_000_000
    assert one.stats.last_ns == START + 49_000_000
    assert one.stats.notes == ["1 packets with impossible times: each got that of the packet before"]


def test_a_file_that_is_cut_short_while_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(captures, "BLOCK_BYTES", 1000)
    path = tmp_path / "a.pcap"
    path.write_bytes(capture(200))
    directory = Directory()
    one = Capture(path, directory, PacketParser(directory))
    os.truncate(path, 24 + 182 * 50)
    assert sum(len(b["packets"]) for b in one.batches()) == 50
    one.close()
    assert one.stats.notes == [f"the file became {182 * 150} bytes shorter while it was read"]


def test_a_block_that_is_too_long_for_any_buffer_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setattr(captures, "BLOCK_BYTES", 1 << 12)
    writer = PcapngWriter()
    data = writer.header() + writer.interface("eth0")
    rows = [writer.packet(*r) for r in records(3)]
    path = tmp_path / "a.pcapng"
    path.write_bytes(data + rows[0] + writer.block(10, bytes(3 << 20)) + rows[1] + rows[2])
    directory = Directory()
    one = Capture(path, directory, PacketParser(directory))
    assert sum(len(b["packets"]) for b in one.batches()) == 3
    assert len(one._window.buf) < 1 << 16
    one.close()
    path.write_bytes(path.read_bytes()[: 1 << 20])
    assert every_table(path)[1] == ["the last record is cut off: truncated, or still being written"]


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(["pcap", "pcapng", "gz"]), st.data())
def test_any_bytes_are_read_or_refused(tmp_path_factory, kind, data):
    good = {"pcap": capture(5), "pcapng": as_pcapng(records(5)), "gz": gzip.compress(capture(5))}[kind]
    bad = bytearray(good)
    for _ in range(data.draw(st.integers(0, 8))):
        bad[data.draw(st.integers(0, len(bad) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("d") / "a"
    path.write_bytes(bytes(bad[: data.draw(st.integers(0, len(bad)))]))
    with contextlib.suppress(CaptureError):
        found, notes = every_table(path)
        assert all(isinstance(n, str) for n in notes)
        assert len(found["packets", "frame"]) <= 5
