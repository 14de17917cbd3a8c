"""vllm-router (the Rust one) by its worker API: a worker is removed and added again.

Tried against vllm-router 0.1.17: both calls act at once; adding one that exists answers 400, removing one
that does not answers 200, so the list is read first. It has no weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import quote

from skewscope.act.actuator import ActuatorError, Request, Target
from skewscope.act.actuators._http import Server
from skewscope.act.settings import Table
from skewscope.core.action import Settled


class VLLMRouter:
    """One router. Endpoint names are worker URLs."""

    VERBS: Mapping[str, bool] = {"drain_endpoint": True}

    def __init__(self, table: Table) -> None:
        self.server = Server.of(table)

    def _urls(self) -> list[str]:
        answer = self.server.json("/list_workers")
        urls = answer.get("urls") if isinstance(answer, dict) else None
        if not isinstance(urls, list):
            raise ActuatorError(f"GET {self.server.url}/list_workers: no list of urls")
        return [str(u) for u in urls]

    def read(self, verb: str, target: Target) -> Settled:
        """Return whether the worker is there."""
        return {"present": target.name in self._urls()}

    def wanted(self, verb: str, target: Target, before: Settled, weight_ratio: float) -> Settled:
        """Return absence."""
        return {"present": False}

    def requests(self, verb: str, target: Target, state: Settled) -> Sequence[Request]:
        """Return the one request; none where it is so already."""
        if (target.name in self._urls()) == state["present"]:
            return []
        what = "add_worker" if state["present"] else "remove_worker"
        return [Request(f"POST /{what}?url={quote(target.name, safe=':/')}", self.server.url)]

    def put(self, verb: str, target: Target, state: Settled) -> None:
        """Send it, and check that the list says so."""
        for request in self.requests(verb, target, state):
            self.server.send("POST", request.what.partition(" ")[2])
        if (target.name in self._urls()) != state["present"]:
            raise ActuatorError(f"{self.server.url}: accepted, but its list of workers did not change")

    def unhealthy(self, names: Sequence[str]) -> set[str]:
        """Return the workers that are missing."""
        return set(names) - set(self._urls())


ACTUATOR = VLLMRouter
