"""A vLLM engine by its own endpoints: asleep or paused it takes no work. Development mode only.

`/sleep` and `/pause` exist where VLLM_SERVER_DEV_MODE=1 is set, which vLLM warns of. Behind a router that
does not look, a paused engine keeps its requests waiting: use this only with one that does (the production
stack skips engines that sleep). Pausing is always `mode=wait`; vLLM's own default would abort what runs.
Source: vllm/entrypoints/serve (dev/rlhf, dev/sleep).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from skewscope.act.actuator import ActuatorError, Request, Target
from skewscope.act.actuators._http import Server
from skewscope.act.settings import Table
from skewscope.core.action import Settled

LEVERS = {
    "sleep": ("/is_sleeping", "is_sleeping", "/sleep?level=1", "/wake_up"),
    "pause": ("/is_paused", "is_paused", "/pause?mode=wait&clear_cache=false", "/resume"),
}
"""How to ask, the key of the answer, how to stop, how to go on."""


ASK_S = 3.0
"""An engine that does not say for this long whether it is stopped counts as out."""


class VLLMEngine:
    """Engines, one server each. Endpoint names are their base URLs."""

    VERBS: Mapping[str, bool] = {"drain_endpoint": True}

    def __init__(self, table: Table) -> None:
        self.ask, self.key, self.stop, self.go = LEVERS[table.text("lever", one_of=tuple(LEVERS))]
        self.timeout_s = table.number("timeout_s", 0.1, 60, 30.0)  # `wait` lets running requests end
        self.token_file = table.text("token_file", "")
        self.token_env = table.text("token_env", "")

    def _server(self, name: str, timeout_s: float) -> Server:
        if not name.startswith(("http://", "https://")):
            raise ActuatorError(f"{name!r} is not the URL of an engine")
        return Server(name.rstrip("/"), timeout_s, self.token_file, self.token_env, "")

    def _stopped(self, name: str) -> bool:
        server = self._server(name, min(self.timeout_s, ASK_S))
        status, _ = server.call("GET", self.ask)
        if status == 404:
            raise ActuatorError(f"{name}: no {self.ask}; it needs VLLM_SERVER_DEV_MODE=1")
        answer = server.json(self.ask)
        if not isinstance(answer, dict) or not isinstance(answer.get(self.key), bool):
            raise ActuatorError(f"{name}{self.ask}: no {self.key} in the answer")
        return bool(answer[self.key])

    def read(self, verb: str, target: Target) -> Settled:
        """Return whether the engine is stopped."""
        return {"stopped": self._stopped(target.name)}

    def wanted(self, verb: str, target: Target, before: Settled, weight_ratio: float) -> Settled:
        """Return stopped."""
        return {"stopped": True}

    def requests(self, verb: str, target: Target, state: Settled) -> Sequence[Request]:
        """Return the one request; none where it is so already."""
        if self._stopped(target.name) == state["stopped"]:
            return []
        return [Request(f"POST {self.stop if state['stopped'] else self.go}", target.name)]

    def put(self, verb: str, target: Target, state: Settled) -> None:
        """Send it."""
        for request in self.requests(verb, target, state):
            self._server(target.name, self.timeout_s).send("POST", request.what.partition(" ")[2])

    def unhealthy(self, names: Sequence[str]) -> set[str]:
        """Return the engines that are stopped or do not answer."""
        out = set()
        for name in names:
            try:
                stopped = self._stopped(name)
            except ActuatorError:
                stopped = True
            out |= {name} if stopped else set()
        return out


ACTUATOR = VLLMEngine
