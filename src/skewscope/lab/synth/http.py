"""The bytes of an OpenAI-style streaming completion over HTTP/1.1."""

from __future__ import annotations

import json

from skewscope.core.tables import Array
from skewscope.wire.build import http_chunk

PATH = "/v1/completions"
RESPONSE_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
BAD_GATEWAY = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
DONE = http_chunk(b"data: [DONE]\n\n") + http_chunk(b"")


def request(prompt: Array, answer_tokens: int) -> bytes:
    """Return a request; prompt: int token ids (tokens,)."""
    body = json.dumps(
        {"model": "synthetic", "prompt": prompt.tolist(), "max_tokens": answer_tokens, "stream": True}
    ).encode()
    head = f"POST {PATH} HTTP/1.1\r\nhost: synthetic\r\ncontent-type: application/json\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def token(number: int, created: int, text: int, last: bool) -> bytes:
    """Return the chunk of one streamed token."""
    choice = {"index": 0, "text": f"tok{text:03d} ", "finish_reason": "length" if last else None}
    event = {
        "id": f"cmpl-{number}",
        "object": "text_completion",
        "created": created,
        "model": "synthetic",
        "choices": [choice],
    }
    return http_chunk(b"data: " + json.dumps(event).encode() + b"\n\n")
