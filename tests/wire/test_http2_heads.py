from __future__ import annotations

import time

import pytest
from hpack import Decoder, Encoder
from hpack.table import HeaderTable
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.wire.http2_heads import (
    MAX_FIELDS,
    MAX_TABLE_BYTES,
    MAX_TOTAL_BYTES,
    Head,
    HeadReader,
    _plain,
    fields,
)
from skewscope.wire.http2_words import EVENTS, MESSAGES, OTHER
from tests.wire.http2_peer import answer, call

# RFC 7541, C.4: three requests on one connection, Huffman-coded.
REQUESTS = [
    "828684418cf1e3c2e5f23a6ba0ab90f4ff",
    "828684be5886a8eb10649cbf",
    "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
]
# RFC 7541, C.6: three responses, with evictions from a table of 256 bytes.
RESPONSES = [
    "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
    "4883640effc1c0bf",
]


def plain(found: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    return [(_plain(n), _plain(v)) for n, v in found]


def read(blocks: list[bytes], reader: HeadReader | None = None, epoch: int = 0) -> list[Head]:
    reader = reader or HeadReader()
    out = []
    for block in blocks:
        reader.add(7, block, True)
        out.append(reader.read(7, epoch, len(block), False))
    return out


def test_examples_of_the_standard() -> None:
    table = HeaderTable()
    got = [plain(fields(table, bytes.fromhex(r))[0]) for r in REQUESTS]
    assert got[0] == [
        (b":method", b"GET"),
        (b":scheme", b"http"),
        (b":path", b"/"),
        (b":authority", b"www.example.com"),
    ]
    assert got[1][3:] == [(b":authority", b"www.example.com"), (b"cache-control", b"no-cache")]
    assert got[2][2:] == [
        (b":path", b"/index.html"),
        (b":authority", b"www.example.com"),
        (b"custom-key", b"custom-value"),
    ]
    table = HeaderTable()
    table.maxsize = 256
    first, second = (plain(fields(table, bytes.fromhex(r))[0]) for r in RESPONSES)
    assert first[0] == (b":status", b"302")
    assert second == [(b":status", b"307"), *first[1:]]


names = st.sampled_from(["x-a", "x-b", ":path", "content-type", "cookie", "grpc-status", ""]).filter(bool)
blocks = st.lists(
    st.tuples(st.lists(st.tuples(names, st.text("abcXYZ/0 ~", max_size=40)), max_size=8), st.booleans()),
    max_size=6,
)


@settings(max_examples=200, deadline=None)
@given(blocks, st.sampled_from([4096, 60, 0]))
def test_against_hpack(made: list[tuple[list[tuple[str, str]], bool]], size: int) -> None:
    encoder, decoder, table = Encoder(), Decoder(), HeaderTable()
    encoder.header_table_size = size
    for some, huffman in made:
        block = encoder.encode(some, huffman=huffman)
        found, whole = fields(table, block)
        assert whole
        assert plain(found) == [(bytes(n), bytes(v)) for n, v in decoder.decode(block, raw=True)]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.binary(max_size=80), max_size=5), st.booleans())
def test_any_bytes_never_raise_and_stay_bounded(made: list[bytes], cut: bool) -> None:
    reader = HeadReader()
    for block in made:
        reader.add(1, block, True)
        reader.read(1, 0, len(block), cut)
    assert reader._pending == 0
    assert reader._held <= 512 + MAX_TABLE_BYTES


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 6), st.integers(0, 30))
def test_a_table_joined_late_never_invents(skipped: int, seed: int) -> None:
    """What is read without the first blocks is what a full decoder reads, or unknown."""
    encoder, decoder, table = Encoder(), Decoder(), HeaderTable()
    for k in range(12):
        some = [*call(f"/s/{(k * 7 + seed) % 5}"), (f"x-{(k + seed) % 4}", str(k % 3))]
        block = encoder.encode(some)
        truth = [(bytes(n), bytes(v)) for n, v in decoder.decode(block, raw=True)]
        if k < skipped:
            continue
        got = plain(fields(table, block)[0])
        assert len(got) == len(truth)
        for (name, value), (true_name, true_value) in zip(got, truth, strict=True):
            assert name in (b"", true_name)
            assert value == true_value or (name, value) == (b"", b"")


@pytest.mark.parametrize(
    ("some", "want"),
    [
        (call("/s/M?key=s3cret"), Head(1, 0, 2, 2, -1, MESSAGES, 0, b"/s/M")),
        (call("/v1", "application/grpc+proto"), Head(1, 0, 2, 2, -1, MESSAGES, 0, b"/v1")),
        (call("/v1", "application/grpc-web+proto"), Head(1, 0, 2, 2, -1, OTHER, 0, b"/v1")),
        (call("/" + "x" * 300, ""), Head(1, 0, 2, 2, -1, OTHER, 0, b"")),
        (answer("text/event-stream; charset=utf-8"), Head(2, 200, 0, 1, -1, EVENTS, 0, b"")),
        ([(":status", "404"), ("content-length", "12")], Head(2, 404, 0, 2, 12, OTHER, 0, b"")),
        ([(":status", "4O4"), ("content-length", "9" * 16)], Head(2, 0, 0, 2, 0, OTHER, 0, b"")),
        ([("grpc-status", "14"), ("grpc-message", "gone")], Head(0, 0, 0, 2, -1, OTHER, 503, b"")),
    ],
)
def test_what_the_fields_amount_to(some: list[tuple[str, str]], want: Head) -> None:
    assert read([Encoder().encode(some)]) == [want]


def test_a_missed_block_empties_the_table() -> None:
    encoder, reader = Encoder(), HeadReader()
    made = [encoder.encode(call("/s/M")) for _ in range(3)]
    assert [h.path for h in read(made[:2], reader)] == [b"/s/M", b"/s/M"]
    assert read(made[2:], reader, epoch=1)[0].path == b""


def test_an_unfinished_block_is_as_good_as_its_beginning() -> None:
    block = Encoder().encode([(":method", "POST"), (":path", "/s/M"), ("x", "y" * 90)], huffman=False)
    reader = HeadReader()
    reader.add(1, block[:30], True)
    got = reader.read(1, 0, len(block), True)
    assert (got.kind, got.path) == (1, b"/s/M")


def test_hostile_blocks_are_bounded_and_quick() -> None:
    reader = HeadReader()
    bomb = b"\x3f\xe1\xff\xff\x7f" + b"\x40\x01a\x7f\x81\x1e" + b"v" * 4000 + b"\xbe" * 60000
    began = time.process_time()
    for stream in range(2000):
        reader.add(stream, bomb, True)
        reader.read(stream, 0, len(bomb), False)
    assert time.process_time() - began < 60  # a hang, not a speed: a tenth of this is usual
    assert reader._held <= MAX_TOTAL_BYTES
    assert len(fields(HeaderTable(), b"\x82" * 60000)[0]) == MAX_FIELDS
    for stream in range(2000):
        reader.add(stream, b"\x82" * 60000, True)
    assert reader._pending <= MAX_TOTAL_BYTES
