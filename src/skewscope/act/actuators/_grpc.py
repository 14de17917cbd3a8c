"""One unary gRPC call over a Unix socket: HTTP/2 with prior knowledge, one stream, an empty answer.

Sources: RFC 9113 (frames), gRPC over HTTP/2 (length-prefixed message, grpc-status in the trailers).
"""

from __future__ import annotations

import socket
import struct
import time

from hpack import Decoder, Encoder, HPACKError

from skewscope.act.actuator import ActuatorError

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST, SETTINGS, PING, GOAWAY, CONTINUATION = 0, 1, 3, 4, 6, 7, 9
END_STREAM, ACK, END_HEADERS, PADDED, PRIORITY = 0x1, 0x1, 0x4, 0x8, 0x20
FRAME_BYTES = 1 << 14
"""What both ends accept without asking; our message is far smaller."""


def call(path: str, method: str, message: bytes, timeout_s: float) -> None:
    """Call `method` on the server at a Unix socket; raises ActuatorError unless grpc-status is 0."""
    deadline_s = time.monotonic() + timeout_s
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
            s.settimeout(timeout_s)
            s.connect(path)
            s.sendall(_request(method, message))
            status, said = _answer(s, deadline_s)
    except (OSError, HPACKError) as error:
        raise ActuatorError(f"{path}: {error}") from None
    if status != "0":
        raise ActuatorError(f"{path}{method}: grpc-status {status or 'missing'} {said}".strip()[:200])


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def _request(method: str, message: bytes) -> bytes:
    head = Encoder().encode(
        [
            (":method", "POST"),
            (":scheme", "http"),
            (":path", method),
            (":authority", "localhost"),
            ("te", "trailers"),
            ("content-type", "application/grpc"),
        ]
    )
    body = b"\0" + struct.pack(">I", len(message)) + message
    if len(body) > FRAME_BYTES:
        raise ActuatorError(f"{method}: the message is longer than {FRAME_BYTES} bytes")
    return (
        PREFACE
        + _frame(SETTINGS, 0, 0, b"")
        + _frame(HEADERS, END_HEADERS, 1, head)
        + _frame(DATA, END_STREAM, 1, body)
    )


def _exactly(s: socket.socket, size: int, deadline_s: float) -> bytes:
    got = b""
    while len(got) < size:
        if time.monotonic() > deadline_s:
            raise TimeoutError("no answer in time")
        piece = s.recv(size - len(got))
        if not piece:
            raise ConnectionError("closed before the answer was complete")
        got += piece
    return got


def _answer(s: socket.socket, deadline_s: float) -> tuple[str, str]:
    """Read frames until the stream ends; return grpc-status and grpc-message."""
    decoder, seen, block = Decoder(), dict[str, str](), b""
    while True:
        head = _exactly(s, 9, deadline_s)
        size, kind, flags = int.from_bytes(head[:3]), head[3], head[4]
        if size > FRAME_BYTES:
            raise ConnectionError("a frame that is longer than agreed")
        payload = _exactly(s, size, deadline_s)
        if kind == SETTINGS and not flags & ACK:
            s.sendall(_frame(SETTINGS, ACK, 0, b""))
        elif kind == PING and not flags & ACK:
            s.sendall(_frame(PING, ACK, 0, payload))
        elif kind in (RST, GOAWAY):
            raise ConnectionError("the server broke the call off")
        elif kind in (HEADERS, CONTINUATION):
            block += _unpadded(kind, flags, payload)
            if flags & END_HEADERS:
                seen.update((_str(k), _str(v)) for k, v in decoder.decode(block))
                block = b""
        if kind in (DATA, HEADERS) and flags & END_STREAM:
            return seen.get("grpc-status", ""), seen.get("grpc-message", "")


def _unpadded(kind: int, flags: int, payload: bytes) -> bytes:
    if kind == HEADERS and flags & PADDED:
        payload = payload[1 : len(payload) - payload[0]]
    return payload[5:] if kind == HEADERS and flags & PRIORITY else payload


def _str(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
