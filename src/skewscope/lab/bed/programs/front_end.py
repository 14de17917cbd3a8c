"""HTTP/1.1 front end of a replica, on the node of rank 0: OpenAI-compatible streaming, health, metrics.

`/v1/completions` and `/v1/chat/completions` answer with server-sent events, one per token by default.
What the serving layer may do wrong is switched by messages on its control socket (`OPTIONS`).
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from pathlib import Path
from typing import Any

from skewscope.lab.bed.control import heard, listen, ready
from skewscope.lab.bed.programs.metrics import Served, Timing

OPTIONS: dict[str, Any] = {
    "work": 1.0,  # processor time per token, in units of about a microsecond per prompt token
    "before_ms": 0.0,  # wait between a request and its hand-over to the engine
    "after_ms": 0.0,  # wait between a token and its sending
    "jitter_ms": 0.0,  # 0..this before each write
    "period_ms": 0.0,  # writes wait for the next multiple of this
    "burst": 1,  # tokens per event
    "ignore_cancel": False,
    "freeze_metrics": False,
    "fail_health": False,
}
WORDS = [
    "the",
    "of",
    "a",
    "to",
    "in",
    "is",
    "that",
    "for",
    "it",
    "as",
    "was",
    "with",
    "be",
    "by",
    "on",
    "not",
    "he",
    "his",
    "but",
    "at",
    "are",
    "this",
    "have",
    "from",
    "or",
    "had",
    "an",
    "they",
]
SPINS_PER_UNIT = 12
BACKLOG = 512


def burn(units: float) -> None:
    """Stand in for tokenising and serialising: processor time in proportion to `units`."""
    for _ in range(int(units * OPTIONS["work"] * SPINS_PER_UNIT)):
        pass


class FrontEnd:
    """The server: requests to the engine, tokens to the clients."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.streams: dict[str, asyncio.Queue[tuple[int, bool]]] = {}
        self.state = {"running": 0, "waiting": 0, "usage": 0.0, "preemptions": 0}
        self.served = Served()
        self.frozen = ""
        self.rng = random.Random(settings["seed"])
        self.engine: asyncio.StreamWriter
        self.fetchers: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        self.fetching = asyncio.Lock()

    def tell_engine(self, **message: Any) -> None:
        """Send one line to rank 0."""
        self.engine.write(json.dumps(message).encode() + b"\n")

    async def from_engine(self, reader: asyncio.StreamReader) -> None:
        """Hand tokens to the streams that wait for them, until the engine ends."""
        while line := await reader.readline():
            message = json.loads(line)
            for key in self.state:
                self.state[key] = message[key]
            for request, number, last in message["tokens"]:
                if queue := self.streams.get(request):
                    queue.put_nowait((number, last))
        if self.settings["hold_on_crash"]:
            await asyncio.sleep(3600)
        os._exit(1)

    async def complete(self, body: bytes, out: asyncio.StreamWriter, close: bool) -> None:
        """Serve one completion. Raises ConnectionError where the client has gone."""
        asked = json.loads(body)
        text = asked.get("prompt") or "".join(str(m.get("content", "")) for m in asked.get("messages", []))
        prompt, answer = max(1, len(text) // 4), int(asked.get("max_tokens", 16))
        burn(prompt)
        if OPTIONS["before_ms"]:
            await asyncio.sleep(OPTIONS["before_ms"] / 1e3)
        request = f"cmpl-{self.rng.getrandbits(48):012x}"
        queue = self.streams[request] = asyncio.Queue()
        timing = self.served.asked(prompt)
        prefill = self.settings.get("prefill")
        try:
            sound = await self._prefill_elsewhere(prefill, text, prompt) if prefill else True
            self.tell_engine(id=request, prompt=prompt, answer=answer, prefilled=bool(prefill))
            await self._stream(request, queue, out, close, "messages" in asked, timing, sound)
            timing.end("length")
        except (ConnectionError, OSError):
            timing.end("abort")
            if not OPTIONS["ignore_cancel"]:
                self.tell_engine(cancel=request)
            raise ConnectionError from None
        finally:
            self.streams.pop(request, None)

    async def _prefill_elsewhere(self, prefill: dict[str, Any], text: str, prompt: int) -> bool:
        """Let the prefill replica compute the prompt, then fetch its keys and values to every rank.

        Returns whether they came. The answer is given all the same: that is the fault.
        """
        body = json.dumps({"model": "bed", "prompt": text, "max_tokens": 1, "stream": True}).encode()
        reader, out = await asyncio.open_connection(prefill["host"], prefill["port"])
        try:
            head = f"POST /v1/completions HTTP/1.1\r\nhost: {prefill['host']}\r\nconnection: close\r\n"
            out.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
            await reader.read()
        finally:
            out.close()
        async with self.fetching:
            size = prompt * prefill["token_bytes"]
            for _, ask in self.fetchers:
                ask.write(json.dumps({"bytes": size}).encode() + b"\n")
            came = [await answers.readline() for answers, _ in self.fetchers]
        return b"lost\n" not in came

    async def _stream(
        self,
        request: str,
        queue: asyncio.Queue[tuple[int, bool]],
        out: asyncio.StreamWriter,
        close: bool,
        chat: bool,
        timing: Timing,
        sound: bool = True,
    ) -> None:
        held, last = _head(close), False
        while not last:
            number, last = await queue.get()
            timing.token()
            await _wait_before_write(self.rng)
            burn(20)
            held += _chunk(_event(request, number if sound else None, last, chat))
            if last:
                held += _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
            if last or number % OPTIONS["burst"] == 0:
                out.write(held)
                held = b""
                await out.drain()
            if out.is_closing() and not last:
                raise ConnectionError

    def metrics(self) -> str:
        """Return the metrics page, in vLLM's names."""
        if OPTIONS["freeze_metrics"] and self.frozen:
            return self.frozen
        self.frozen = self.served.page(self.state)
        return self.frozen

    async def serve(self, reader: asyncio.StreamReader, out: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                line, *fields = head.decode("latin-1").split("\r\n")
                said = {k.lower(): v for k, _, v in (f.partition(": ") for f in fields)}
                body = await reader.readexactly(int(said.get("content-length", 0)))
                close = said.get("connection", "").lower() == "close"
                await self._respond(line.split()[1], body, out, close)
                await out.drain()
                if close:
                    break
        except (asyncio.IncompleteReadError, ConnectionError, OSError):
            pass
        finally:
            out.close()

    async def _respond(self, path: str, body: bytes, out: asyncio.StreamWriter, close: bool) -> None:
        if path in ("/v1/completions", "/v1/chat/completions"):
            await self.complete(body, out, close)
        elif path == "/v1/models":
            models = {"object": "list", "data": [{"id": "bed", "object": "model", "owned_by": "bed"}]}
            out.write(_plain(json.dumps(models), "application/json"))
        elif path == "/health":
            out.write(
                _plain("", "text/plain", "503 Service Unavailable" if OPTIONS["fail_health"] else "200 OK")
            )
        elif path == "/metrics":
            out.write(_plain(self.metrics(), "text/plain"))
        else:
            out.write(_plain("not found", "text/plain", "404 Not Found"))


async def _wait_before_write(rng: random.Random) -> None:
    ms = OPTIONS["after_ms"] + rng.uniform(0.0, OPTIONS["jitter_ms"])
    if OPTIONS["period_ms"]:
        ms += OPTIONS["period_ms"] - (time.time() * 1e3 + ms) % OPTIONS["period_ms"]
    if ms:
        await asyncio.sleep(ms / 1e3)


def _event(request: str, number: int | None, last: bool, chat: bool) -> bytes:
    """Return one event; a number of None stands for what comes of damaged keys and values."""
    text = "!" if number is None else " " + WORDS[(number * 7) % len(WORDS)]
    said: dict[str, Any] = {"index": 0, "finish_reason": "length" if last else None}
    said |= {"delta": {"content": text}} if chat else {"text": text, "logprobs": None}
    kind = "chat.completion.chunk" if chat else "text_completion"
    event = {"id": request, "object": kind, "created": int(time.time()), "model": "bed", "choices": [said]}
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def _chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def _head(close: bool) -> bytes:
    return (
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ncache-control: no-cache\r\n"
        b"connection: " + (b"close" if close else b"keep-alive") + b"\r\ntransfer-encoding: chunked\r\n\r\n"
    )


def _plain(text: str, kind: str, status: str = "200 OK") -> bytes:
    data = text.encode()
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(data)}\r\n"
        "connection: keep-alive\r\n\r\n"
    )
    return head.encode() + data


async def main() -> None:
    """Serve until the engine ends."""
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    OPTIONS.update(settings.get("options", {}))
    front = FrontEnd(settings)
    folder = Path(settings["folder"])
    reader, front.engine = await asyncio.open_unix_connection(
        folder / f"{settings['leader']}.sock", limit=1 << 20
    )
    for fetcher in settings.get("fetchers", []):
        front.fetchers.append(await asyncio.open_unix_connection(folder / f"{fetcher}.sock"))
    control = listen(folder / f"{settings['name']}.ctl")

    def on_message() -> None:
        message = heard(control)
        if message.pop("reset", False):
            front.tell_engine(reset=True)
        OPTIONS.update(message)

    loop = asyncio.get_running_loop()
    loop.add_reader(control, on_message)
    task = loop.create_task(front.from_engine(reader))
    await asyncio.start_server(front.serve, "0.0.0.0", settings["port"], backlog=BACKLOG)
    ready(settings)
    await task


if __name__ == "__main__":
    asyncio.run(main())
