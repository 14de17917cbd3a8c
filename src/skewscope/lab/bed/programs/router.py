"""HTTP proxy in front of the replicas: one connection to a backend per request.

Policies: `weighted` round robin, `least` requests in flight, `sticky` by client port, and `scraped` (least
loaded as of the last scrape of each backend's metrics, ties to the first).
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from skewscope.lab.bed.control import heard, listen, ready

REFUSED = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\nconnection: keep-alive\r\n\r\n"
BACKLOG = 512


class Router:
    """The proxy and its choice of a backend."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.backends: list[tuple[str, int]] = [(host, port) for host, port in settings["backends"]]
        count = len(self.backends)
        self.options: dict[str, Any] = {
            "policy": "weighted",
            "weights": [1.0] * count,
            "hold_bytes": 0,
            "scrape_s": 1.0,
            **settings.get("options", {}),
        }
        self.credit, self.flight, self.scraped = [0.0] * count, [0] * count, [0.0] * count

    def choose(self, client_port: int) -> int:
        """Return the number of the backend for the next request."""
        count = len(self.backends)
        policy = self.options["policy"]
        if policy == "least":
            return min(range(count), key=lambda i: self.flight[i])
        if policy == "scraped":
            return min(range(count), key=lambda i: self.scraped[i])
        if policy == "sticky":
            return self._sticky(client_port)
        weights = self.options["weights"]
        self.credit = [c + w for c, w in zip(self.credit, weights, strict=True)]
        best = max(range(count), key=lambda i: self.credit[i])
        self.credit[best] -= sum(weights)
        return best

    def _sticky(self, client_port: int) -> int:
        weights = self.options["weights"]
        point = (client_port * 2654435761 % 2**32) / 2**32 * sum(weights)
        for i, weight in enumerate(weights):
            point -= weight
            if point < 0:
                return i
        return len(weights) - 1

    async def serve(self, reader: asyncio.StreamReader, out: asyncio.StreamWriter) -> None:
        """Serve one client connection."""
        client_port = int(out.get_extra_info("peername")[1])
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                fields = head.lower()
                size = 0
                if b"content-length: " in fields:
                    size = int(fields.split(b"content-length: ")[1].split(b"\r\n")[0])
                body = await reader.readexactly(size)
                await self._forward(client_port, head, body, out)
                if b"connection: close" in fields:
                    break
        except (asyncio.IncompleteReadError, ConnectionError, OSError):
            pass
        finally:
            out.close()

    async def _forward(self, client_port: int, head: bytes, body: bytes, out: asyncio.StreamWriter) -> None:
        chosen = self.choose(client_port)
        self.flight[chosen] += 1
        answered, upstream = False, None
        try:
            with suppress(ConnectionRefusedError):
                answers, upstream = await asyncio.open_connection(*self.backends[chosen])
                upstream.write(head.replace(b"connection: keep-alive", b"connection: close") + body)
                answered = await self._copy(answers, out)
        finally:
            self.flight[chosen] -= 1
            if upstream is not None:
                upstream.close()
        if not answered:
            out.write(REFUSED)

    async def _copy(self, answers: asyncio.StreamReader, out: asyncio.StreamWriter) -> bool:
        """Copy an answer to the client as it comes; return whether there was one."""
        first, kept = True, b""
        while data := await answers.read(65536):
            if first:
                data = data.replace(b"connection: close", b"connection: keep-alive", 1)
                first = False
            kept += data
            if len(kept) > self.options["hold_bytes"]:
                out.write(kept)
                kept = b""
                await out.drain()
        out.write(kept)
        return not first

    async def scrape(self) -> None:
        """Read the load of every backend now and then, for the policy `scraped`."""
        while True:
            await asyncio.sleep(self.options["scrape_s"])
            if self.options["policy"] != "scraped":
                continue
            for i, backend in enumerate(self.backends):
                with suppress(OSError, ValueError):
                    self.scraped[i] = await _load_of(*backend)


async def _load_of(host: str, port: int) -> float:
    reader, out = await asyncio.open_connection(host, port)
    out.write(f"GET /metrics HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
    page = (await reader.read(65536)).decode("latin-1")
    out.close()
    rows = [r for r in page.splitlines() if r.startswith("vllm:num_requests")]
    return sum(float(r.rsplit(" ", 1)[1]) for r in rows)


async def main() -> None:
    """Serve until killed."""
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    router = Router(settings)
    control = listen(Path(settings["folder"]) / f"{settings['name']}.ctl")
    loop = asyncio.get_running_loop()
    loop.add_reader(control, lambda: router.options.update(heard(control)))
    scraper = loop.create_task(router.scrape())
    server = await asyncio.start_server(router.serve, "0.0.0.0", settings["port"], backlog=BACKLOG)
    ready(settings)
    await server.serve_forever()
    scraper.cancel()


if __name__ == "__main__":
    asyncio.run(main())
