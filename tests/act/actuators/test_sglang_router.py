import contextlib
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from skewscope.act.actuator import ActuatorError
from skewscope.act.actuators.sglang_router import SGLangRouter
from tests.act.actuators import servers
from tests.act.actuators.servers import at, table


@contextlib.contextmanager
def router(urls: list[str]) -> Iterator[tuple[SGLangRouter, int]]:
    environment = servers.packages("sglang_router")
    port, metrics = servers.free_port(), servers.free_port()
    command = servers.python(
        "-m", "sglang_router.launch_router", "--worker-urls", *urls, "--policy", "round_robin"
    )
    command += ["--host", "127.0.0.1", "--port", str(port), "--prometheus-port", str(metrics)]
    made = SGLangRouter(table(url=f"http://127.0.0.1:{port}"))

    def ready() -> bool:
        try:
            return not made.unhealthy(urls)
        except ActuatorError:
            return False

    with servers.running(command, ready, env=environment):
        yield made, port


@pytest.mark.slow
def test_a_real_gateway_drops_a_worker_and_takes_it_back() -> None:
    with servers.workers(3) as w, router([s.url for s in w]) as (made, port):
        name = at(w[1].url)
        before = made.read("drain_endpoint", name)
        assert before["present"] is True
        assert before["priority"] == 50
        after = made.wanted("drain_endpoint", name, before, 0.0)
        (request,) = made.requests("drain_endpoint", name, after)
        assert request.what.startswith("DELETE /workers/")
        for _ in range(2):
            made.put("drain_endpoint", name, after)
        assert made.read("drain_endpoint", name) == after
        assert made.unhealthy([s.url for s in w]) == {w[1].url}
        time.sleep(2)
        assert 1 not in {servers.ask(port) for _ in range(12)}
        made.put("drain_endpoint", name, before)
        assert made.read("drain_endpoint", name) == before
        time.sleep(2)
        assert 1 in {servers.ask(port) for _ in range(12)}


def test_a_worker_comes_back_as_it_was() -> None:
    rows: list[dict[str, Any]] = [
        {"id": "u 1", "url": "http://w1", "priority": 7, "labels": {"a": "b"}, "load": 3}
    ]

    def answer(method: str, path: str, body: str) -> tuple[int, Any]:
        if method == "DELETE":
            assert path == "/workers/u%201"
            rows.clear()
            return 202, {}
        if method == "POST":
            rows.append({"id": "u2", **json.loads(body)})
            return 202, {}
        return 200, {"workers": rows}

    with servers.serve(answer) as s:
        made = SGLangRouter(table(url=s.url))
        before = made.read("drain_endpoint", at("http://w1"))
        assert before == {"present": True, "priority": 7, "labels": {"a": "b"}}
        made.put("drain_endpoint", at("http://w1"), {"present": False})
        assert rows == []
        made.put("drain_endpoint", at("http://w1"), before)
        assert rows == [{"id": "u2", "url": "http://w1", "priority": 7, "labels": {"a": "b"}}]


def test_accepted_is_not_done() -> None:
    def answer(method: str, path: str, body: str) -> tuple[int, Any]:
        return (200, {"workers": [{"id": "u", "url": "http://w1"}]}) if method == "GET" else (202, {})

    with servers.serve(answer) as s:
        made = SGLangRouter(table(url=s.url, settle_s=0.2))
        with pytest.raises(ActuatorError, match=r"accepted, but not done within 0\.2 s"):
            made.put("drain_endpoint", at("http://w1"), {"present": False})


@pytest.mark.parametrize("answer", [[], {}, {"workers": 3}, {"workers": [{}]}, b"<html>"])
def test_nonsense_is_one_line(answer: Any) -> None:
    with servers.serve(lambda *_: (200, answer)) as s, pytest.raises(ActuatorError):
        SGLangRouter(table(url=s.url)).read("drain_endpoint", at("http://w1"))
