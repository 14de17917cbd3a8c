"""KV transfers between prefill and decode nodes: `role` serve (prefill side) or fetch (decode side).

The fetcher is asked over a Unix socket, one line of JSON with `bytes`, and answers with a line at the end. On
the wire: eight bytes of size from the fetcher, then that many bytes back, over one connection per pair that
stays open. The server may be silent for `before_s` first, send pieces of `piece_bytes`, be held to
`rate_bps`, reset a share `fail_ratio` of the transfers half-way, or close the connection behind a share
`close_ratio` of them; its control socket changes these. A transfer that failed is answered with `lost`, and a
connection that ended is opened again.
"""

from __future__ import annotations

import asyncio
import json
import random
import struct
import sys
import time
from pathlib import Path
from typing import Any

from skewscope.lab.bed.control import heard, listen, ready

SIZE = struct.Struct("<Q")
HALF_S = 0.005
OPTIONS: dict[str, Any] = {
    "before_s": 0.0,
    "piece_bytes": 262144,
    "rate_bps": 0.0,
    "fail_ratio": 0.0,
    "close_ratio": 0.0,
}


class Server:
    """The prefill side: sends what is asked for."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.options = {**OPTIONS, **settings.get("options", {})}
        self.rng = random.Random(settings["name"])

    async def serve(self, reader: asyncio.StreamReader, out: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while True:
                (size,) = SIZE.unpack(await reader.readexactly(SIZE.size))
                await asyncio.sleep(self.options["before_s"])
                piece = int(self.options["piece_bytes"])
                fails = self.rng.random() < self.options["fail_ratio"]
                closes = self.rng.random() < self.options["close_ratio"]
                for start in range(0, size // 2 if fails else size, piece):
                    part = min(piece, size - start)
                    out.write(bytes(part))
                    await out.drain()
                    if self.options["rate_bps"]:
                        await asyncio.sleep(part * 8 / self.options["rate_bps"])
                if fails:
                    await asyncio.sleep(HALF_S)  # what was sent gets there
                    out.transport.abort()
                    return
                if closes:
                    out.close()
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            out.close()


class Fetcher:
    """The decode side: asks, waits for the bytes, and says so."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.peer = (settings["host"], settings["port"])
        self.log = (Path(settings["folder"]) / f"{settings['name']}.jsonl").open("w", encoding="utf-8")
        self.turn = asyncio.Lock()

    async def connect(self) -> None:
        """Open the connection to the prefill side."""
        self.reader, self.out = await asyncio.open_connection(*self.peer, limit=1 << 20)

    async def serve(self, asks: asyncio.StreamReader, answers: asyncio.StreamWriter) -> None:
        """Fetch for one front-end connection, one transfer at a time."""
        while line := await asks.readline():
            size = int(json.loads(line)["bytes"])
            async with self.turn:
                begun = time.time_ns()
                whole = await self._fetch(size)
            row = {"start_ns": begun, "end_ns": time.time_ns(), "transfer_bytes": size, "whole": whole}
            print(json.dumps(row), file=self.log, flush=True)
            answers.write(b"done\n" if whole else b"lost\n")

    async def _fetch(self, size: int) -> bool:
        """Fetch `size` bytes; return whether all came. Where not, the connection is opened anew.

        A connection that had ended before anything came is no failed transfer: it is asked for once more.
        """
        for _ in range(2):
            left = size
            try:
                self.out.write(SIZE.pack(size))
                while left:
                    data = await self.reader.read(min(left, 1 << 18))
                    if not data:
                        raise ConnectionError
                    left -= len(data)
                return True
            except ConnectionError:
                self.out.close()
                await self.connect()
            if left < size:
                break
        return False


async def main() -> None:
    """Run the role that the settings name."""
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    folder, name = Path(settings["folder"]), settings["name"]
    if settings["role"] == "serve":
        server = Server(settings)
        control = listen(folder / f"{name}.ctl")
        asyncio.get_running_loop().add_reader(control, lambda: server.options.update(heard(control)))
        await asyncio.start_server(server.serve, "0.0.0.0", settings["port"])
    else:
        fetcher = Fetcher(settings)
        await fetcher.connect()
        await asyncio.start_unix_server(fetcher.serve, folder / f"{name}.sock")
    ready(settings)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
