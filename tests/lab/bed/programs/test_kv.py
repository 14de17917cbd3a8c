"""KV transfers between a server and a fetcher in this process: whole ones, failures, closed connections."""

import asyncio
import json

import pytest

from skewscope.lab.bed.programs.kv import Fetcher, Server


class Answers:
    """Takes what a fetcher answers."""

    def __init__(self):
        self.lines = []

    def write(self, line):
        self.lines.append(line)


def transfers(tmp_path, count, **options):
    """Make `count` transfers of 300 kB; return the answers and the fetcher's rows."""
    answers = Answers()

    async def main():
        server = Server({"name": "kv-a", "options": options})
        async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listener:
            port = listener.sockets[0].getsockname()[1]
            fetcher = Fetcher({"name": "kv-b", "host": "127.0.0.1", "port": port, "folder": tmp_path})
            await fetcher.connect()
            asks = asyncio.StreamReader()
            asks.feed_data(b'{"bytes": 300000}\n' * count)
            asks.feed_eof()
            await asyncio.wait_for(fetcher.serve(asks, answers), 10)
            fetcher.out.close()
            fetcher.log.close()
            await asyncio.sleep(0.05)  # the server sees the end

    asyncio.run(main())
    return answers.lines, [json.loads(x) for x in (tmp_path / "kv-b.jsonl").read_text().splitlines()]


def test_whole_transfers_are_done(tmp_path):
    answers, rows = transfers(tmp_path, 3)
    assert answers == [b"done\n"] * 3
    assert all(r["whole"] and r["end_ns"] > r["start_ns"] for r in rows)


def test_a_transfer_that_is_reset_half_way_is_lost_and_the_next_one_has_a_connection(tmp_path):
    answers, rows = transfers(tmp_path, 3, fail_ratio=1.0)
    assert answers == [b"lost\n"] * 3
    assert not any(r["whole"] for r in rows)


@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_connections_that_end_behind_whole_transfers_lose_nothing(tmp_path, ratio):
    answers, _ = transfers(tmp_path, 6, close_ratio=ratio)
    assert answers == [b"done\n"] * 6
