"""Load generator: closed loop (`clients`), open loop (`rate` or `trace`), slow readers, hang-ups.

Open loop: requests are due at times fixed beforehand, each in a task of its own, and every latency counts
from the time a request was due, not from when it could be sent. A generator that waits for a slow server
before it sends the next request would hide the waiting (coordinated omission).
Messages: {"go": true} starts, {"end": true} lets what is open finish and starts no more; the same settings
and the next "go" make the same requests again. One JSON line per request goes to `<name>.jsonl`.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from skewscope.lab.bed.arrivals import Arrival, Lengths, synthetic, trace
from skewscope.lab.bed.control import heard, listen, ready

DEFAULTS: dict[str, Any] = {
    "clients": 4, "rate": 0.0, "cv": 1.0, "burst": 1, "trace": "", "prompt": "16", "answer": "40",
    "think_s": 0.0, "keep_alive": True, "read_bps": 0.0, "receive_buffer": 0, "hang_up_after": 0,
    "stagger_s": 0.05, "path": "/v1/completions",
    "most_prompt": 400, "most_answer": 80, "trace_start_s": 0.0, "upload_bps": 0.0, "idle_s": 0.0,
    "distinct": False,
}  # fmt: skip
READ_EVERY_S = 0.2
END, EMPTY = b"0\r\n\r\n", b"content-length: 0\r\n"


class HungUpError(OSError):
    """The client itself ended the request."""


class Client:
    """One group of clients with the same habits."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.s = {**DEFAULTS, **settings}
        self.log = (Path(settings["folder"]) / f"{settings['name']}.jsonl").open("w", encoding="utf-8")
        self.sockets = 0
        self.going = False

    def begin(self) -> None:
        """Start the series of draws anew."""
        self.going = True
        self.rng = random.Random(f"client {self.s['seed']} {self.s['name']}")
        self.prompt, self.answer = Lengths(self.s["prompt"], self.rng), Lengths(self.s["answer"], self.rng)

    async def connect(self) -> socket.socket:
        """Open a connection from the next of this group's addresses."""
        s = socket.socket()
        s.setblocking(False)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self.s["receive_buffer"]:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.s["receive_buffer"])
        if self.s["sources"]:
            s.bind((self.s["sources"][self.sockets % len(self.s["sources"])], 0))
        self.sockets += 1
        await asyncio.get_running_loop().sock_connect(s, (self.s["host"], self.s["port"]))
        return s

    async def request(self, s: socket.socket, due_ns: int, arrival: Arrival) -> bool:
        """Send one request, read its answer, log it; return whether the connection may be used again."""
        sent_ns, times, size, tail, ended = time.time_ns(), [], 0, b"", "open"
        try:
            await self._send(s, arrival)
            while not (tail.endswith(END) or EMPTY in tail):
                data = await self._read(s)
                if not data:
                    ended = "closed"
                    break
                times.append(time.time_ns())
                size += len(data)
                tail = (tail + data)[-400:]
                if self.s["hang_up_after"] and len(times) >= self.s["hang_up_after"]:
                    raise HungUpError
            if ended == "open":
                # An empty answer ends with the same bytes as a chunked one.
                ended = "refused" if EMPTY in tail else "complete"
        except HungUpError:
            ended = "hung_up"
            raise
        except OSError:
            ended = "failed"
            raise
        finally:
            self._write(due_ns, sent_ns, times, size, arrival, ended)
        return ended == "complete"

    async def _send(self, s: socket.socket, arrival: Arrival) -> None:
        prompt = "abcd" * arrival.prompt
        if self.s["distinct"]:  # else all begin alike, as prompts with one system prompt do
            prompt = f"{self.rng.getrandbits(64):016x}" + prompt[16:]
        body = json.dumps(
            {
                "model": "bed",
                "prompt": prompt,
                "max_tokens": arrival.answer,
                "stream": True,
                "ignore_eos": True,
            }
        ).encode()
        head = (
            f"POST {self.s['path']} HTTP/1.1\r\nhost: {self.s['host']}:{self.s['port']}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: keep-alive\r\n\r\n"
        )
        loop, data = asyncio.get_running_loop(), head.encode() + body
        if not self.s["upload_bps"]:
            await loop.sock_sendall(s, data)
            return
        piece = max(1, int(self.s["upload_bps"] / 8 * READ_EVERY_S))
        for k in range(0, len(data), piece):
            await loop.sock_sendall(s, data[k : k + piece])
            await asyncio.sleep(READ_EVERY_S)

    async def _read(self, s: socket.socket) -> bytes:
        loop = asyncio.get_running_loop()
        if not self.s["read_bps"]:
            return await loop.sock_recv(s, 65536)
        await asyncio.sleep(READ_EVERY_S)
        return await loop.sock_recv(s, max(1, int(self.s["read_bps"] / 8 * READ_EVERY_S)))

    def _write(
        self, due_ns: int, sent_ns: int, times: list[int], size: int, arrival: Arrival, ended: str
    ) -> None:
        row = {
            "due_ns": due_ns,
            "sent_ns": sent_ns,
            "first_ns": times[0] if times else None,
            "end_ns": times[-1] if times else None,
            "prompt": arrival.prompt,
            "answer": arrival.answer,
            "bytes": size,
            "ended": ended,
            "gaps_us": [(b - a) // 1000 for a, b in pairwise(times)],
        }
        print(json.dumps(row), file=self.log, flush=True)

    async def one(
        self, due_ns: int, arrival: Arrival, s: socket.socket | None = None
    ) -> socket.socket | None:
        """Make one request over `s` or a new connection; return the connection where it can be kept."""
        try:
            s = s or await self.connect()
            if await self.request(s, due_ns, arrival) and self.s["keep_alive"]:
                return s
        except HungUpError:
            pass
        except OSError:
            await asyncio.sleep(0.5)
        if s is not None:
            s.close()
        return None

    async def closed_loop(self, number: int) -> None:
        """One client: the next request follows the last. It is due when the client would have sent it."""
        await asyncio.sleep(number * self.s["stagger_s"])
        s = None
        while self.going:
            s = await self.one(time.time_ns(), Arrival(0.0, self.prompt.draw(), self.answer.draw()), s)
            pause = self.s["idle_s"] + (
                self.rng.expovariate(1 / self.s["think_s"]) if self.s["think_s"] else 0
            )
            await asyncio.sleep(pause)
        if s is not None:
            s.close()

    def arrivals(self) -> Iterator[Arrival]:
        """Return the open-loop arrivals that the settings ask for."""
        s = self.s
        if s["trace"]:
            return trace(Path(s["trace"]), s["rate"], s["most_prompt"], s["most_answer"], s["trace_start_s"])
        return synthetic(s["rate"], s["cv"], s["burst"], self.prompt, self.answer, self.rng)

    async def open_loop(self) -> None:
        """Send each request when it is due, whatever became of the others."""
        start_ns, tasks = time.time_ns(), set()
        idle: list[socket.socket] = []

        async def one(due_ns: int, arrival: Arrival) -> None:
            s = await self.one(due_ns, arrival, idle.pop() if idle else None)
            if s is not None:
                idle.append(s)

        for arrival in self.arrivals():
            due_ns = start_ns + int(arrival.due_s * 1e9)
            while self.going and (wait_ns := due_ns - time.time_ns()) > 0:
                await asyncio.sleep(min(wait_ns / 1e9, 0.1))
            if not self.going:
                break
            task = asyncio.create_task(one(due_ns, arrival))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
        await asyncio.gather(*tasks)
        for s in idle:
            s.close()


async def main() -> None:
    """Obey messages until killed."""
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    client, loop = Client(settings), asyncio.get_running_loop()
    control = listen(Path(settings["folder"]) / f"{settings['name']}.ctl")
    running: list[asyncio.Task[Any]] = []

    def on_message() -> None:
        message = heard(control)
        if message.get("end") or message.get("go"):
            client.going = False
        if message.get("abort"):
            for task in running:
                task.cancel()
            running.clear()
        if message.get("go"):
            client.begin()
            if client.s["rate"]:
                running.append(loop.create_task(client.open_loop()))
            else:
                running.extend(loop.create_task(client.closed_loop(k)) for k in range(client.s["clients"]))

    loop.add_reader(control, on_message)
    ready(settings)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
