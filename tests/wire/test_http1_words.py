from __future__ import annotations

import numpy as np
import pytest

from skewscope.wire import http1_words as words
from skewscope.wire.layout import CARRY, FRAMER


def line(text: bytes) -> np.ndarray:
    row = np.zeros(CARRY, np.uint8)
    row[: len(text)] = np.frombuffer(text, np.uint8)
    return row


def frozen(text: bytes) -> np.ndarray:
    data = np.frombuffer(text, np.uint8).copy()
    data.flags.writeable = False
    return data


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b"GET / HTTP/1.1\r\n", words.REQUEST),
        (b"PATCH /x HTTP/1.1\r\n", words.REQUEST),
        (b"PRI * HTTP/2.0\r\n", words.NOTHING),
        (b"HTTP/1.0 200 OK\r\n", words.RESPONSE),
        (b"HTTP/2 200\r\n", words.NOTHING),
        (b"a0\r\ndata: x", words.CHUNK),
        (b"0\r\n\r\n", words.CHUNK),
        (b"0\r\n\r\nHTTP", words.NOTHING),
        (b"00a\r\nxx", words.NOTHING),
        (b"123456789\r\n", words.NOTHING),
        (b"a0\r", words.NOTHING),
        (b"", words.NOTHING),
        (b'{"a": 1}', words.NOTHING),
    ],
)
def test_what_a_segment_start_looks_like(text: bytes, kind: int) -> None:
    assert words.looks_like(frozen(text), 0, len(text)) == kind


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (b"GET /v1/models?x=1 HTTP/1.1", b"/v1/models"),
        (b"GET http://host:80/metrics HTTP/1.1", b"/metrics"),
        (b"OPTIONS * HTTP/1.1", b"*"),
        (b"CONNECT host:443 HTTP/1.1", b""),
        (b"GET /cut", b""),
        (b"GET http://host HTTP/1.1", b""),
    ],
)
def test_target_is_the_path_only(text: bytes, target: bytes) -> None:
    rows, row = np.zeros(1, FRAMER), line(text)
    assert words.start_line(rows[0], row, len(text), 1)
    assert row[words.LINE : words.LINE + rows[0]["target_bytes"]].tobytes() == target


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (b"a0", 160),
        (b"FFFFFFFF", 2**32 - 1),
        (b"1;x=y", 1),
        (b"1 ", 1),
        (b"", -1),
        (b"x", -1),
        (b"123456789", -1),
    ],
)
def test_chunk_size(text: bytes, size: int) -> None:
    assert words.chunk_size(line(text), len(text)) == size


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        (b"Content-Length:  42", "length", 42),
        (b"content-length: 9999999999999999", "length", -1),
        (b"content-length: x", "length", -1),
        (b"TRANSFER-ENCODING: gzip, Chunked", "chunked", 1),
        (b"Content-Type:text/event-stream", "streaming", 1),
        (b"content-type: application/json", "streaming", 2),
        (b"x-content-type: text/event-stream", "streaming", 0),
    ],
)
def test_headers(text: bytes, field: str, value: int) -> None:
    rows = np.zeros(1, FRAMER)
    rows[0]["length"] = -1
    words.header(rows[0], line(text), len(text), 1)
    assert rows[0][field] == value


def test_header_that_was_cut_off_tells_no_more_than_it_shows() -> None:
    for text, streaming in ((b"content-type: text/event-str", 0), (b"content-type: text/event-stream", 1)):
        rows = np.zeros(1, FRAMER)
        words.header(rows[0], line(text), len(text), 0)
        assert rows[0]["streaming"] == streaming
    rows = np.zeros(1, FRAMER)
    words.header(rows[0], line(b"content-length: 12"), 18, 0)
    assert rows[0]["length"] == 0
