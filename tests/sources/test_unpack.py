"""Compressed, cut, padded, padded with rubbish, huge: plain bytes up to the damage, in bounded memory."""

import bz2
import gzip
import importlib
import importlib.util
import lzma
import os
import sys
import threading
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.sources import unpack
from skewscope.sources.unpack import DAMAGE, Stream, UnreadableError, looks_like_capture

LONG = np.random.default_rng(5).integers(0, 16, 2_500_000, dtype=np.uint8).tobytes()
DATA = LONG[:300_000]
PACKERS = {"plain": bytes, "gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}
for module, name in (("zstandard", "zstd"), ("lz4.frame", "lz4")):
    if importlib.util.find_spec(module.split(".", maxsplit=1)[0]):
        PACKERS[name] = importlib.import_module(module).compress
PACKED = {k: v for k, v in PACKERS.items() if k != "plain"}
each = pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS.keys())
each_packed = pytest.mark.parametrize("pack", PACKED.values(), ids=PACKED.keys())


def read(path, size=1 << 16):
    """Return (the plain bytes up to the end or to damage, the exception)."""
    stream = Stream(path)
    out, buffer = b"", bytearray(size)
    try:
        while count := stream.readinto(memoryview(buffer)):
            out += buffer[:count]
    except (UnreadableError, *DAMAGE) as error:
        return out, error
    finally:
        stream.close()
    return out, None


@each
@pytest.mark.parametrize("size", [1 << 12, 1 << 20])
def test_the_bytes_come_out(tmp_path, pack, size):
    path = tmp_path / "a"
    path.write_bytes(pack(DATA))
    assert read(path, size) == (DATA, None)


@each_packed
def test_members_behind_each_other_and_zeros_between_them(tmp_path, pack):
    path = tmp_path / "a"
    path.write_bytes(pack(DATA[:1000]) + bytes(8) + pack(b"") + pack(DATA[1000:]) + bytes(512))
    assert read(path) == (DATA, None)


@each_packed
def test_a_cut_keeps_what_came_before(tmp_path, pack):
    path = tmp_path / "a"
    packed = pack(LONG)
    path.write_bytes(packed[: 7 * len(packed) // 8])
    out, error = read(path)
    assert isinstance(error, EOFError)
    assert len(out) > len(DATA)
    assert LONG.startswith(out)


@each_packed
def test_rubbish_behind_loses_nothing(tmp_path, pack):
    path = tmp_path / "a"
    path.write_bytes(pack(DATA) + b"rubbish that is no header")
    out, error = read(path)
    assert out == DATA
    assert str(error) == "something else behind the compressed data was left out"


@each_packed
def test_damage_in_the_middle_keeps_what_came_before(tmp_path, pack):
    path = tmp_path / "a"
    packed = bytearray(pack(LONG))
    packed[len(packed) // 2 : len(packed) // 2 + 64] = bytes(64)
    path.write_bytes(bytes(packed))
    out, error = read(path)
    if pack in (gzip.compress, bz2.compress, lzma.compress):  # the others wrote no checksum
        assert error is not None
    assert out[: len(DATA)] == DATA


@each_packed
def test_what_unpacks_to_much_takes_little_memory(tmp_path, pack):
    path = tmp_path / "a"
    path.write_bytes(pack(bytes(200 << 20)))
    stream, buffer, total = Stream(path), bytearray(1 << 20), 0
    tracemalloc.start()
    try:
        while count := stream.readinto(memoryview(buffer)):
            total += count
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
        stream.close()
    assert total == 200 << 20
    assert peak < 140 << 20


@pytest.mark.parametrize(
    ("magic", "name"),
    [(b"\x28\xb5\x2f\xfd", "zstd"), (b"\x04\x22\x4d\x18", "lz4"), (b"\x51\x2a\x4d\x18", "zstd")],
)
def test_a_missing_library_is_named(tmp_path, monkeypatch, magic, name):
    for module in ("zstandard", "lz4", "lz4.frame"):
        monkeypatch.setitem(sys.modules, module, None)
    path = tmp_path / "a.pcap.x"
    path.write_bytes(magic + bytes(40))
    with pytest.raises(UnreadableError, match=rf"compressed with {name}: install skewscope\[{name}\]"):
        Stream(path)
    assert looks_like_capture(path)
    other = path.rename(tmp_path / "log.x")
    assert not looks_like_capture(other)


def test_an_xz_file_that_wants_much_memory_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(lzma.compress(DATA))
    monkeypatch.setattr(unpack, "MEMORY_BYTES", 1 << 16)
    out, error = read(path)
    assert out == b""
    assert isinstance(error, lzma.LZMAError)


def test_a_growing_file_ends_where_it_ended_when_opened(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"x" * 100)
    stream = Stream(path)
    with path.open("ab") as more:
        more.write(b"y" * 100)
    buffer = bytearray(300)
    counts = [stream.readinto(memoryview(buffer)) for _ in range(4)]
    stream.close()
    assert (sum(counts), counts[-1], stream.missing) == (100, 0, 0)


def test_a_file_cut_short_while_it_is_read(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"x" * 100_000)
    stream = Stream(path)
    os.truncate(path, 500)
    buffer = bytearray(1000)
    total = sum(stream.readinto(memoryview(buffer)) for _ in range(5))
    stream.close()
    assert (total, stream.missing) == (500, 99_500)


def test_a_pipe_has_no_size(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(gzip.compress(DATA)))
    writer.start()
    assert read(path) == (DATA, None)
    writer.join()


def test_standard_input(monkeypatch):
    there, here = os.pipe()
    os.write(here, b"hello")
    os.close(here)
    real = os.dup
    monkeypatch.setattr(os, "dup", lambda fd: real(there if fd == 0 else fd))
    assert read(unpack.STANDARD_INPUT) == (b"hello", None)
    os.close(there)


def test_what_cannot_be_opened_raises_and_leaves_no_file_open(tmp_path):
    with pytest.raises(OSError, match="directory"):
        Stream(tmp_path)
    with pytest.raises(FileNotFoundError):
        Stream(Path(tmp_path / "none"))
    assert not looks_like_capture(tmp_path)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(PACKERS)), st.data())
def test_damaged_bytes_raise_nothing_else(tmp_path_factory, name, data):
    packed = bytearray(PACKERS[name](DATA[:5000]))
    for _ in range(data.draw(st.integers(0, 5))):
        packed[data.draw(st.integers(0, len(packed) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.mktemp("d") / "a"
    path.write_bytes(bytes(packed[: data.draw(st.integers(0, len(packed)))]))
    try:
        read(path)
    except (UnreadableError, *DAMAGE):
        pass  # the first bytes were damaged
