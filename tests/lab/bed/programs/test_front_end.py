"""The front end with an engine in this process: streams, cancellations, metrics, what it may do wrong."""

import asyncio
import json

import pytest

from skewscope.lab.bed.programs import front_end
from skewscope.lab.bed.programs.front_end import FrontEnd


class Engine:
    """Takes what the front end says to rank 0."""

    def __init__(self):
        self.heard = []

    def write(self, data):
        self.heard += [json.loads(line) for line in data.splitlines()]


class Out:
    """A client connection that may break after some writes."""

    def __init__(self, breaks_after=None):
        self.data, self.writes, self.breaks_after = b"", 0, breaks_after

    def write(self, data):
        self.data += data
        self.writes += 1

    async def drain(self):
        if self.breaks_after is not None and self.writes > self.breaks_after:
            raise ConnectionResetError

    def is_closing(self):
        return False


@pytest.fixture
def front(monkeypatch):
    monkeypatch.setattr(front_end, "OPTIONS", dict(front_end.OPTIONS))
    front = FrontEnd({"seed": 1, "hold_on_crash": False})
    front.engine = Engine()
    return front


def serve(front, out, tokens=3, **asked):
    """Serve one completion while an engine makes its tokens."""

    async def main():
        body = json.dumps({"prompt": "abcd" * 6, "max_tokens": tokens, **asked}).encode()
        task = asyncio.create_task(front.complete(body, out, close=False))
        await asyncio.sleep(0)
        (request,) = front.streams
        for number in range(1, tokens + 1):
            front.streams[request].put_nowait((number, number == tokens))
        await task

    asyncio.run(main())


def events(data):
    return [json.loads(x.split(b"\n\n")[0]) for x in data.split(b"data: ")[1:] if not x.startswith(b"[DONE]")]


def test_a_completion_is_a_stream_of_events_in_chunks(front):
    out = Out()
    serve(front, out)
    assert front.engine.heard[0]["prompt"] == 6
    assert front.engine.heard[0]["answer"] == 3
    head, _, body = out.data.partition(b"\r\n\r\n")
    assert b"text/event-stream" in head
    assert body.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")
    assert [e["choices"][0]["finish_reason"] for e in events(body)] == [None, None, "length"]
    assert out.writes == 3


def test_a_chat_completion_has_deltas(front):
    out = Out()
    serve(front, out, prompt="", messages=[{"role": "user", "content": "abcd" * 4}])
    assert "delta" in events(out.data)[0]["choices"][0]
    assert front.engine.heard[0]["prompt"] == 4


def test_bursts_hold_tokens_back(front):
    front_end.OPTIONS["burst"] = 2
    out = Out()
    serve(front, out, tokens=5)
    assert out.writes == 3
    assert len(events(out.data)) == 5


@pytest.mark.parametrize("ignored", [False, True])
def test_a_client_that_goes_away_is_cancelled_unless_the_fault_is_on(front, ignored):
    front_end.OPTIONS["ignore_cancel"] = ignored
    with pytest.raises(ConnectionError):
        serve(front, Out(breaks_after=1))
    assert any("cancel" in m for m in front.engine.heard) is not ignored
    assert not front.streams


def test_metrics_follow_the_engine_until_they_are_frozen(front):
    front.state["running"] = 3
    first = front.metrics()
    assert 'vllm:num_requests_running{model_name="bed",engine="0"} 3' in first
    front_end.OPTIONS["freeze_metrics"] = True
    front.state["running"] = 5
    assert front.metrics() == first
    front_end.OPTIONS["freeze_metrics"] = False
    assert "} 5" in front.metrics()


def test_health_can_lie(front):
    out = Out()
    asyncio.run(front._respond("/health", b"", out, False))
    front_end.OPTIONS["fail_health"] = True
    asyncio.run(front._respond("/health", b"", out, False))
    asyncio.run(front._respond("/nonsense", b"", out, False))
    assert [x.split(b" ")[1] for x in out.data.split(b"HTTP/1.1")[1:]] == [b"200", b"503", b"404"]


def test_a_lost_transfer_is_answered_all_the_same_with_damaged_text(front, monkeypatch):
    async def lost(prefill, text, prompt):
        return False

    front.settings["prefill"] = {"host": "x", "port": 1, "token_bytes": 1}
    monkeypatch.setattr(front, "_prefill_elsewhere", lost)
    out = Out()

    async def main():
        body = json.dumps({"prompt": "abcd", "max_tokens": 3}).encode()
        task = asyncio.create_task(front.complete(body, out, close=False))
        while not front.streams:
            await asyncio.sleep(0)
        (request,) = front.streams
        for number in (1, 2, 3):
            front.streams[request].put_nowait((number, number == 3))
        await task

    asyncio.run(main())
    assert out.data.startswith(b"HTTP/1.1 200 OK")
    assert out.data.count(b'"text": "!"') == 3
    assert b"[DONE]" in out.data


def test_the_page_counts_what_was_served(front):
    serve(front, Out(), tokens=3)
    page = front.metrics()
    assert 'vllm:request_success_total{finished_reason="length",model_name="bed",engine="0"} 1' in page
    assert 'vllm:inter_token_latency_seconds_count{model_name="bed",engine="0"} 2' in page
    assert 'vllm:prompt_tokens_total{model_name="bed",engine="0"} 6' in page
