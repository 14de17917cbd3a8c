"""A small OpenAI-compatible server on loopback, over the NumPy model with random weights."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from skewscope.fingerprint.llama import Arithmetic, forward, plain, random_model
from skewscope.fingerprint.white_box import log_softmax

MODEL = random_model(0)
VOCABULARY = MODEL.embedding.shape[0]


def tokens_of(prompt: Any) -> list[int]:
    return list(prompt) if isinstance(prompt, list) else [ord(c) % VOCABULARY for c in prompt]


class Served(ThreadingHTTPServer):
    """`bodies` holds what was asked; `failures` replies are sent first, as (status, headers, body)."""

    daemon_threads = True

    def __init__(self, math: Arithmetic) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.math, self.bodies, self.keys = math, [], []
        self.failures: list[tuple[int, dict[str, str], bytes]] = []
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def logprobs(self, tokens: list[int]) -> np.ndarray:
        return log_softmax(forward(MODEL, np.array([tokens]), self.math, len(tokens))[0])


class Handler(BaseHTTPRequestHandler):
    server: Served

    def log_message(self, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.bodies.append((self.path, body))
            self.server.keys.append(self.headers.get("Authorization", ""))
            failure = self.server.failures.pop(0) if self.server.failures else None
        if failure:
            self._send(*failure)
            return
        chat = self.path.endswith("/chat/completions")
        reply = self._chat(body) if chat else self._completion(body)
        if body.get("stream"):
            raw = "".join(f"data: {json.dumps(part)}\n\n" for part in reply) + "data: [DONE]\n\n"
            self._send(200, {"Content-Type": "text/event-stream"}, raw.encode())
        else:
            choices = [c for part in reply for c in part["choices"]]
            self._send(200, {"Content-Type": "application/json"}, json.dumps({"choices": choices}).encode())

    def _send(self, status: int, headers: dict[str, str], raw: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def _completion(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        prompt = body["prompt"]
        several = isinstance(prompt, list) and prompt and not isinstance(prompt[0], int)
        parts = []
        for index, one in enumerate(prompt if several else [prompt]):
            ids, rows, names = tokens_of(one), [], []
            values = self.server.logprobs(ids)
            if body.get("echo"):
                names, rows = [f"token_id:{ids[0]}"], [None]
                for i, row in zip(ids[1:], values, strict=False):
                    names.append(f"token_id:{i}")
                    rows.append(self._top(row, body["logprobs"]))
            for _ in range(body["max_tokens"]):
                row = self.server.logprobs(ids)[-1]
                for key, bias in body.get("logit_bias", {}).items():
                    row[int(key)] += bias
                best = int(np.argmax(row))
                ids.append(best)
                names.append(f"token_id:{best}")
                rows.append(self._top(row, body["logprobs"]))
            own = [None if r is None else r.get(n) for n, r in zip(names, rows, strict=True)]
            logprobs = {"tokens": names, "token_logprobs": own, "top_logprobs": rows}
            parts.append({"choices": [{"index": index, "text": "x", "logprobs": logprobs}]})
        return parts

    def _top(self, row: np.ndarray, most: int) -> dict[str, float]:
        return {f"token_id:{i}": float(row[i]) for i in np.argsort(-row)[:most]}

    def _chat(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        ids, parts = tokens_of(body["messages"][0]["content"]), []
        for _ in range(body["max_tokens"]):
            row = self.server.logprobs(ids)[-1]
            order = [int(i) for i in np.argsort(-row)[: body["top_logprobs"]]]
            top = [{"token": f"<{i}>", "logprob": float(row[i])} for i in order]
            ids.append(order[0])
            parts.append(
                {"choices": [{"index": 0, "logprobs": {"content": [top[0] | {"top_logprobs": top}]}}]}
            )
        if not body.get("stream"):
            content = [item for part in parts for item in part["choices"][0]["logprobs"]["content"]]
            parts = [{"choices": [{"index": 0, "logprobs": {"content": content}}]}]
        return parts


@contextmanager
def serving(math: Arithmetic | None = None) -> Iterator[Served]:
    """Run a server in this process until the block is left."""
    server = Served(math or plain(np.float32))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
