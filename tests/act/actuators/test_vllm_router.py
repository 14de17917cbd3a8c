import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from skewscope.act.actuator import ActuatorError
from skewscope.act.actuators.vllm_router import VLLMRouter
from tests.act.actuators import servers
from tests.act.actuators.servers import at, table


@contextlib.contextmanager
def router(urls: list[str]) -> Iterator[tuple[VLLMRouter, int]]:
    environment = servers.packages("vllm_router")
    port, metrics = servers.free_port(), servers.free_port()
    script = str(Path(environment["PYTHONPATH"]) / "bin" / "vllm-router")
    command = servers.python(script, "--worker-urls", *urls, "--policy", "round_robin")
    command += ["--host", "127.0.0.1", "--port", str(port), "--prometheus-port", str(metrics)]
    made = VLLMRouter(table(url=f"http://127.0.0.1:{port}"))

    def ready() -> bool:
        try:
            return not made.unhealthy(urls)
        except ActuatorError:
            return False

    with servers.running(command, ready, env=environment):
        yield made, port


@pytest.mark.slow
def test_a_real_router_drops_a_worker_and_takes_it_back() -> None:
    with servers.workers(3) as w, router([s.url for s in w]) as (made, port):
        name = at(w[1].url)
        before = made.read("drain_endpoint", name)
        after = made.wanted("drain_endpoint", name, before, 0.0)
        assert (before, after) == ({"present": True}, {"present": False})
        (request,) = made.requests("drain_endpoint", name, after)
        assert request.what == f"POST /remove_worker?url={w[1].url}"
        for _ in range(2):
            made.put("drain_endpoint", name, after)
        assert made.unhealthy([s.url for s in w]) == {w[1].url}
        assert {servers.ask(port) for _ in range(12)} == {0, 2}
        for _ in range(2):
            made.put("drain_endpoint", name, before)
        assert {servers.ask(port) for _ in range(12)} == {0, 1, 2}


@pytest.mark.parametrize("answer", [[], {}, {"urls": 3}, b"<html>"])
def test_nonsense_is_one_line(answer: Any) -> None:
    with servers.serve(lambda *_: (200, answer)) as s, pytest.raises(ActuatorError):
        VLLMRouter(table(url=s.url)).read("drain_endpoint", at("http://w1"))


def test_a_list_that_does_not_change_is_an_error() -> None:
    with servers.serve(lambda *_: (200, {"urls": ["http://w1"]})) as s:
        made = VLLMRouter(table(url=s.url))
        with pytest.raises(ActuatorError, match="did not change"):
            made.put("drain_endpoint", at("http://w1"), {"present": False})
