"""One end of an HTTP/2 connection, for tests: frames by hpack's encoder and the frame builder."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence

from hpack import Encoder

from skewscope.wire.build import http2_frame
from skewscope.wire.http2_words import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PADDED,
    PREFACE,
    PRIORITISED,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
)

Fields = Sequence[tuple[str, str]]
HELLO = PREFACE.tobytes() + http2_frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 100))
WELCOME = http2_frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535)) + http2_frame(SETTINGS, 1, 0, b"")


def call(path: str, content: str = "application/grpc") -> Fields:
    """Return the fields of a POST."""
    names = (":method", ":scheme", ":path", ":authority", "content-type", "te", "user-agent")
    return list(
        zip(names, ("POST", "http", path, "engine:50051", content, "trailers", "test/1"), strict=True)
    )


def answer(content: str = "application/grpc", status: int = 200) -> Fields:
    """Return the fields of a response head."""
    return [(":status", str(status)), ("content-type", content), ("server", "engine")]


class Peer:
    """Keeps the encoder's table, so that header blocks refer to earlier ones."""

    def __init__(self) -> None:
        self.encoder = Encoder()

    def headers(
        self, stream: int, fields: Fields, end: bool = False, cuts: Sequence[int] = (),
        pad: int | None = None, priority: bool = False, huffman: bool = True,
    ) -> bytes:  # fmt: skip
        """Return a HEADERS frame, with CONTINUATION frames at the cuts."""
        block = self.encoder.encode(fields, huffman=huffman)
        edges = [0, *sorted(c % (len(block) + 1) for c in cuts), len(block)]
        parts = [block[a:b] for a, b in itertools.pairwise(edges)]
        flags = (END_STREAM if end else 0) | (PADDED if pad is not None else 0)
        flags |= (PRIORITISED if priority else 0) | (END_HEADERS if len(parts) == 1 else 0)
        body = (b"" if pad is None else bytes([pad])) + (struct.pack(">IB", 0, 15) if priority else b"")
        out = http2_frame(HEADERS, flags, stream, body + parts[0] + b"\0" * (pad or 0))
        for k, part in enumerate(parts[1:], 2):
            out += http2_frame(CONTINUATION, END_HEADERS if k == len(parts) else 0, stream, part)
        return out

    def promise(self, stream: int, promised: int, fields: Fields) -> bytes:
        """Return a PUSH_PROMISE frame."""
        block = struct.pack(">I", promised) + self.encoder.encode(fields)
        return http2_frame(PUSH_PROMISE, END_HEADERS, stream, block)


def data(stream: int, body: bytes, end: bool = False, pad: int | None = None) -> bytes:
    """Return a DATA frame."""
    flags = (END_STREAM if end else 0) | (PADDED if pad is not None else 0)
    return http2_frame(
        DATA, flags, stream, (b"" if pad is None else bytes([pad])) + body + b"\0" * (pad or 0)
    )


def reset(stream: int, code: int) -> bytes:
    """Return an RST_STREAM frame."""
    return http2_frame(RST_STREAM, 0, stream, struct.pack(">I", code))
