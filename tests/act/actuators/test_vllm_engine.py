"""Against a stand-in that speaks the documented paths; vLLM itself does not run here."""

from typing import Any

import pytest

from skewscope.act.actuator import ActuatorError
from skewscope.act.actuators.vllm_engine import VLLMEngine
from tests.act.actuators import servers
from tests.act.actuators.servers import at, table


class Engine:
    def __init__(self) -> None:
        self.sleeping = self.paused = False

    def reply(self, method: str, path: str, body: str) -> tuple[int, Any]:
        known = {
            ("GET", "/is_sleeping"): {"is_sleeping": self.sleeping},
            ("GET", "/is_paused"): {"is_paused": self.paused},
        }
        if (method, path) in known:
            return 200, known[method, path]
        if method == "POST" and path in ("/sleep?level=1", "/wake_up"):
            self.sleeping = path != "/wake_up"
            return 200, b""
        if method == "POST" and path in ("/pause?mode=wait&clear_cache=false", "/resume"):
            self.paused = path != "/resume"
            return 200, {"status": "ok"}
        return 404, {"detail": "Not Found"}


@pytest.mark.parametrize("lever", ["sleep", "pause"])
def test_there_and_back(lever: str) -> None:
    engine = Engine()
    with servers.serve(engine.reply) as s:
        made, name = VLLMEngine(table(lever=lever)), at(s.url)
        before = made.read("drain_endpoint", name)
        after = made.wanted("drain_endpoint", name, before, 0.0)
        for _ in range(2):
            made.put("drain_endpoint", name, after)
        assert (engine.sleeping, engine.paused) == (lever == "sleep", lever == "pause")
        assert made.unhealthy([s.url]) == {s.url}
        made.put("drain_endpoint", name, before)
        assert (engine.sleeping, engine.paused) == (False, False)
        assert made.unhealthy([s.url]) == set()
        sent = [(m, p) for m, p, _ in s.seen if m == "POST"]
        assert len(sent) == 2
        assert not any("abort" in p for _, p in sent)


def test_outside_of_development_mode_it_says_so() -> None:
    with servers.serve(lambda *_: (404, {})) as s:
        with pytest.raises(ActuatorError, match="needs VLLM_SERVER_DEV_MODE=1"):
            VLLMEngine(table(lever="pause")).read("drain_endpoint", at(s.url))
        assert VLLMEngine(table(lever="pause")).unhealthy([s.url]) == {s.url}


@pytest.mark.parametrize("answer", [[], {}, {"is_paused": "yes"}, b"<html>"])
def test_nonsense_is_one_line(answer: Any) -> None:
    with servers.serve(lambda *_: (200, answer)) as s, pytest.raises(ActuatorError):
        VLLMEngine(table(lever="pause")).read("drain_endpoint", at(s.url))
    with pytest.raises(ActuatorError, match="not the URL"):
        VLLMEngine(table(lever="pause")).read("drain_endpoint", at("r1"))
