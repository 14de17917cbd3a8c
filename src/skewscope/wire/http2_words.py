"""HTTP/2 frame headers and how a flow is known by them (RFC 9113, 3.4, 4.1 and 6)."""

from __future__ import annotations

import numpy as np

from skewscope.core.tables import Array
from skewscope.wire.jit import inner
from skewscope.wire.layout import Row, i64

HEADER_BYTES = 9
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = (
    range(10)
)
END_STREAM, END_HEADERS, PADDED, PRIORITISED = 1, 4, 8, 32

OTHER, EVENTS, MESSAGES = 0, 1, 2
"""What the DATA of a stream carries: server-sent events, gRPC messages, or something else."""

PREFACE = np.frombuffer(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", np.uint8)
PREFACE_SIGN = 14
"""Bytes of the preface that tell it from any request of HTTP/1."""

MAX_FRAME_BYTES = 1 << 20
"""Peers may allow frames of up to 16 MiB (6.5.2); servers that raise the limit at all stay below this."""

COMMON_FRAME_BYTES = 16384
COMMON_STREAM = 1 << 20
"""Where frames alone must tell the protocol, only common lengths and stream ids count."""

ENOUGH_FRAMES = 3
"""Frame headers in a row, each where the one before ends, by which a flow without preface is known."""

_FLAGS = np.array([0x09, 0x2D, 0, 0, 1, 0x0C, 1, 0, 0, 4], np.uint8)
"""Flags defined for each type."""
_EXACT = np.array([-1, -1, 5, 4, -1, -1, 8, -1, 4, -1], np.int64)
"""Length of the types that have only one."""


@inner
def sane(src: Array, at: int) -> bool:
    """Tell whether the nine bytes at `at` can be a frame header of a type that RFC 9113 defines."""
    kind = src[at + 3]
    if kind > CONTINUATION:
        return False
    if src[at + 4] & ~_FLAGS[kind] & 0xFF or src[at + 5] & 0x80:
        return False
    length = frame_bytes(src, at)
    stream = stream_id(src, at)
    if length > MAX_FRAME_BYTES or (_EXACT[kind] >= 0 and length != _EXACT[kind]):
        return False
    if kind == SETTINGS:
        return stream == 0 and length % 6 == 0 and (src[at + 4] == 0 or length == 0)
    if kind in (PING, GOAWAY):
        return stream == 0 and length >= 8
    return bool(stream > 0 or kind == WINDOW_UPDATE)


@inner
def extension(src: Array, at: int) -> bool:
    """Tell whether a frame header is of a type that later documents define (RFC 9113, 5.5)."""
    return src[at + 3] > CONTINUATION and src[at + 5] < 0x80 and frame_bytes(src, at) <= COMMON_FRAME_BYTES


@inner
def frame_bytes(src: Array, at: int) -> int:
    """Return the length field: bytes behind the header."""
    return i64(src[at]) << 16 | i64(src[at + 1]) << 8 | i64(src[at + 2])


@inner
def stream_id(src: Array, at: int) -> int:
    """Return the stream id of a header."""
    low = i64(src[at + 6]) << 16 | i64(src[at + 7]) << 8 | i64(src[at + 8])
    return (i64(src[at + 5]) & 0x7F) << 24 | low


@inner
def preface(src: Array, at: int, size: int) -> bool:
    """Tell whether the known bytes start with the client's connection preface, or are its beginning."""
    for k in range(min(size, len(PREFACE))):
        if src[at + k] != PREFACE[k]:
            return False
    return size >= PREFACE_SIGN


@inner
def chain(src: Array, at: int, size: int) -> int:
    """Return how many frame headers follow each other in the known bytes, 0 where one is not sane."""
    k = i64(0)
    frames = i64(0)
    while k + HEADER_BYTES <= size:
        if not sane(src, at + k) and (frames == 0 or not extension(src, at + k)):
            return 0
        frames += 1
        k += HEADER_BYTES + frame_bytes(src, at + k)
    return frames


@inner
def _common(src: Array, at: int, size: int) -> bool:
    """Tell whether the frames of a segment end with it and are of the usual kind."""
    k = i64(0)
    while k + HEADER_BYTES <= size:
        length = frame_bytes(src, at + k)
        if length > COMMON_FRAME_BYTES or stream_id(src, at + k) > COMMON_STREAM:
            return False
        if length == 0 and src[at + k + 3] != SETTINGS and src[at + k + 4] == 0:
            return False  # zeros, and little else, are more often something else
        k += HEADER_BYTES + length
    return k == size


@inner
def first_settings(src: Array, at: int, size: int) -> bool:
    """Tell whether a segment starts with SETTINGS that set something: how a server begins (3.4)."""
    if size < HEADER_BYTES + 6 or src[at + 3] != SETTINGS or src[at + 4] != 0 or chain(src, at, size) == 0:
        return False
    length = frame_bytes(src, at)
    if length < 6 or length > 240 or size < HEADER_BYTES + length:
        return False
    return bool(src[at + 9] == 0 and 1 <= src[at + 10] <= 9)


@inner
def looks_like(link: Row, src: Array, at: int, size: int, skip: int) -> bool:
    """Tell whether a segment start shows HTTP/2; counts frames in a row in the link."""
    if preface(src, at, size) or first_settings(src, at, size):
        return True
    frames = chain(src, at, size)
    if frames == 0 or not _common(src, at, size + skip if frames == 1 else size):
        link["frames"] = 0
        return False
    link["frames"] = min(link["frames"] + frames, 250)
    return bool(link["frames"] >= ENOUGH_FRAMES)
