"""The load generator against a server in this process: due times, waits, hang-ups, how a request ended."""

import asyncio
import json
from itertools import islice
from random import Random

import pytest

from skewscope.lab.bed.arrivals import Lengths, synthetic
from skewscope.lab.bed.programs.client import Client, HungUpError

HEAD = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
EVENT = b"5\r\nabcde\r\n"
REFUSED = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n"


class Server:
    """Answers each request with three events; the first request waits until `release` is set."""

    def __init__(self, stall=False, refuse=False):
        self.stall, self.refuse, self.seen = stall, refuse, 0
        self.release = asyncio.Event()

    async def serve(self, reader, out):
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                size = int(head.split(b"content-length: ")[1].split(b"\r\n")[0])
                await reader.readexactly(size)
                self.seen += 1
                if self.stall:
                    await self.release.wait()
                out.write(REFUSED if self.refuse else HEAD)
                for part in () if self.refuse else (EVENT, EVENT, EVENT, b"0\r\n\r\n"):
                    out.write(part)
                    await out.drain()
                    await asyncio.sleep(0.002)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            out.close()


async def with_server(server, tmp_path, settings, act):
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    base = {"name": "c", "folder": str(tmp_path), "host": "127.0.0.1", "port": port, "sources": [], "seed": 1}
    client = Client({**base, **settings})
    client.begin()
    try:
        await act(client)
    finally:
        client.log.close()
        listening.close()
        await asyncio.sleep(0)
    return [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]


def test_requests_are_due_at_times_that_a_stalled_server_cannot_move(tmp_path):
    count = 8

    async def main():
        server = Server(stall=True)

        async def act(client):
            task = asyncio.create_task(client.open_loop())
            while server.seen < count:  # all were sent though not one was answered
                await asyncio.sleep(0.01)
            client.going = False
            server.release.set()
            await task

        return await with_server(server, tmp_path, {"rate": 60.0, "answer": "3"}, act)

    rows = sorted(asyncio.run(main()), key=lambda r: r["due_ns"])
    rng = Random("client 1 c")
    asked = [
        a.due_s
        for a in islice(synthetic(60.0, 1.0, 1, Lengths("16", rng), Lengths("3", rng), rng), len(rows))
    ]
    start = rows[0]["due_ns"] - int(asked[0] * 1e9)
    assert len(rows) >= count
    assert [r["due_ns"] - start for r in rows] == [int(a * 1e9) for a in asked]
    assert all(r["ended"] == "complete" and r["first_ns"] > r["sent_ns"] >= r["due_ns"] for r in rows)


def test_a_closed_loop_keeps_its_connection_and_logs_gaps(tmp_path):
    async def main():
        server = Server()

        async def act(client):
            task = asyncio.create_task(client.closed_loop(0))
            while server.seen < 3:
                await asyncio.sleep(0.01)
            client.going = False
            await task
            assert client.sockets == 1

        return await with_server(server, tmp_path, {"answer": "3"}, act)

    rows = asyncio.run(main())
    assert len(rows) >= 3
    assert all(r["ended"] == "complete" and len(r["gaps_us"]) >= 1 and r["bytes"] > 30 for r in rows)


@pytest.mark.parametrize(
    ("settings", "server", "ended"),
    [({"hang_up_after": 1}, {}, "hung_up"), ({}, {"refuse": True}, "refused")],
)
def test_how_a_request_ended_is_logged(tmp_path, settings, server, ended):
    async def main():
        async def act(client):
            s = await client.connect()
            try:
                await client.request(
                    s, 1, next(synthetic(1.0, 1.0, 1, client.prompt, client.answer, Random(1)))
                )
            except HungUpError:
                assert ended == "hung_up"
            finally:
                s.close()

        return await with_server(Server(**server), tmp_path, settings, act)

    (row,) = asyncio.run(main())
    assert row["ended"] == ended


def test_a_trace_file_gives_the_arrivals(tmp_path):
    file = tmp_path / "trace.jsonl"
    file.write_text('{"timestamp": 0, "input_length": 800, "output_length": 160}\n' * 3
                    + '{"timestamp": 900, "input_length": 400, "output_length": 80}\n')  # fmt: skip
    settings = {
        "trace": str(file),
        "rate": 2.0,
        "name": "c",
        "folder": str(tmp_path),
        "seed": 1,
        "sources": [],
    }
    client = Client(settings)
    client.log.close()
    found = list(client.arrivals())
    assert [(a.prompt, a.answer) for a in found] == [(400, 80)] * 3 + [(200, 40)]
    assert found[-1].due_s == pytest.approx(1.5)
