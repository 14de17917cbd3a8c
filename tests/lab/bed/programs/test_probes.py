"""Probes of a front end and scrapes of a gateway in this process."""

import asyncio
import json

from skewscope.lab.bed.programs.probes import watch

PAGE = b"x 1\n" * 30_000


def watched(tmp_path, health, status=b"200 OK"):
    """Watch a server for two rounds; return the paths it was asked for and its port."""
    asked = []

    async def serve(reader, out):
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1]
        asked.append(path)
        out.write(b"HTTP/1.1 " + status + b"\r\n\r\n" + (PAGE if path == b"/metrics" else b""))
        await out.drain()
        out.close()

    async def main():
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            settings = {"folder": tmp_path, "name": "probes", "every_s": 0.05}
            task = asyncio.create_task(watch("127.0.0.1", port, settings, health))
            while len(list(tmp_path.glob("metrics/*/*.prom"))) < 2:
                await asyncio.sleep(0.01)
                assert not task.done()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await asyncio.sleep(0.02)
        return port

    return asked, asyncio.run(asyncio.wait_for(main(), 10))


def test_a_front_end_is_asked_for_its_health_and_its_whole_page(tmp_path):
    asked, port = watched(tmp_path, health=True, status=b"503 Service Unavailable")
    assert set(asked) == {b"/health", b"/metrics"}
    pages = sorted((tmp_path / "metrics" / f"127.0.0.1_{port}").iterdir())
    assert pages[0].read_bytes() == PAGE
    rows = [json.loads(x) for x in (tmp_path / "probes-127.0.0.1.jsonl").read_text().splitlines()]
    assert rows[0] == {"ts_ns": int(pages[0].stem), "health": 503}


def test_a_gateway_is_only_scraped(tmp_path):
    asked, _ = watched(tmp_path, health=False)
    assert set(asked) == {b"/metrics"}
    assert (tmp_path / "probes-127.0.0.1.jsonl").read_text() == ""
