"""The management node: health checks and scrapes of every front end, each `every_s`; pages go to a folder.

Of a gateway only the page is fetched.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from skewscope.lab.bed.control import ready

LIMIT_S = 2.0


async def get(host: str, port: int, path: str) -> tuple[int, str]:
    """Return status and body of one request over a connection of its own."""
    reader, out = await asyncio.open_connection(host, port)
    try:
        out.write(f"GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n".encode())
        head, _, body = (await reader.read()).decode("latin-1").partition("\r\n\r\n")
    finally:
        out.close()
    return int(head.split()[1]), body


async def watch(host: str, port: int, settings: dict[str, Any], health: bool) -> None:
    """Probe one front end for ever, or scrape one gateway."""
    pages = Path(settings["folder"]) / "metrics" / f"{host}_{port}"
    pages.mkdir(parents=True, exist_ok=True)
    rows = Path(settings["folder"]) / f"{settings['name']}-{host}.jsonl"
    with rows.open("a", encoding="utf-8") as log:
        while True:
            begun = time.time_ns()
            try:
                status = 200
                if health:
                    status, _ = await asyncio.wait_for(get(host, port, "/health"), LIMIT_S)
                _, page = await asyncio.wait_for(get(host, port, "/metrics"), LIMIT_S)
                (pages / f"{begun}.prom").write_text(page, encoding="utf-8")
            except (OSError, TimeoutError, IndexError, ValueError):
                status = 0
            if health:
                print(json.dumps({"ts_ns": begun, "health": status}), file=log, flush=True)
            await asyncio.sleep(max(0.0, settings["every_s"] - (time.time_ns() - begun) / 1e9))


async def main() -> None:
    """Probe until killed."""
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    ready(settings)
    watched = [(*t, True) for t in settings["targets"]] + [(*p, False) for p in settings["pages"]]
    await asyncio.gather(*(watch(host, port, settings, health) for host, port, health in watched))


if __name__ == "__main__":
    asyncio.run(main())
