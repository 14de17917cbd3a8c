"""gRPC messages counted in the DATA of a stream: one byte of flags, four of length, the message.

Source: "gRPC over HTTP2" (PROTOCOL-HTTP2.md), Length-Prefixed-Message. Messages and frames are
independent: a frame may hold several messages and a message may span frames.
"""

from __future__ import annotations

from types import MappingProxyType

from skewscope.core.tables import Array
from skewscope.wire.jit import inner
from skewscope.wire.layout import Row, i64

PREFIX_BYTES = 5
COMPRESSED = 1
"""The only flag defined; a first byte above it is not the start of a message."""

HTTP_STATUS = MappingProxyType({
    0: 0, 1: 499, 2: 500, 3: 400, 4: 504, 5: 404, 6: 409, 7: 403, 8: 429, 9: 400, 10: 409, 11: 400,
    12: 501, 13: 500, 14: 503, 15: 500, 16: 401,
})  # fmt: skip
"""HTTP status that each gRPC status code amounts to (google/rpc/code.proto); 0 = no error."""


@inner
def begin_frame(h: Row, nbytes: int) -> None:
    """Look for the place again at the start of a DATA frame of that many bytes, if it was lost.

    Senders mostly give each message a frame of its own, so a message that fills the frame is believed.
    """
    if h["known"] == 0:
        h["known"] = 1
        h["got"] = 0
        h["size"] = 0
        h["left"] = 0
        h["probe"] = nbytes


@inner
def _prefix(h: Row, c: int) -> None:
    """Take one byte of a prefix."""
    if h["got"] == 0:
        if c > COMPRESSED:
            h["known"] = 0
            return
        h["size"] = 0
    else:
        h["size"] = h["size"] << 8 | c
    h["got"] += 1
    if h["got"] < PREFIX_BYTES:
        return
    h["got"] = 0
    if h["probe"] > 0 and h["size"] + PREFIX_BYTES != h["probe"]:
        h["known"] = 0
        return
    h["probe"] = 0
    h["left"] = h["size"]
    if h["left"] == 0:
        h["events"] = min(h["events"] + 1, 1 << 30)


@inner
def scan(h: Row, src: Array, at: int, n: int) -> None:
    """Count in h["events"] the messages that end in n bytes."""
    k = i64(0)
    while k < n and h["known"] == 1:
        if h["left"] > 0:
            step = min(h["left"], n - k)
            h["left"] -= step
            k += step
            if h["left"] == 0:
                h["events"] = min(h["events"] + 1, 1 << 30)
        else:
            _prefix(h, i64(src[at + k]))
            k += 1
