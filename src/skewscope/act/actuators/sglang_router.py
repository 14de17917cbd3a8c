"""The SGLang gateway (sglang-router) by its worker API: a worker is removed, and added again as it was.

Tried against sglang-router 0.3.2: workers are addressed by the id of `GET /workers`, `DELETE` and `POST`
answer 202 and take effect within two seconds, so `put` waits until it is so. There is no weight: its
`priority` and `cost` were not seen to change the balance.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from skewscope.act.actuator import ActuatorError, Request, Target
from skewscope.act.actuators._http import Server
from skewscope.act.settings import Table
from skewscope.core.action import Settled

KEPT = ("model_id", "priority", "cost", "worker_type", "labels")
"""What a worker is given again when it comes back."""


class SGLangRouter:
    """One gateway. Endpoint names are worker URLs."""

    VERBS: Mapping[str, bool] = {"drain_endpoint": True}

    def __init__(self, table: Table) -> None:
        self.server = Server.of(table)
        self.settle_s = table.number("settle_s", 0, 60, 10.0)

    def _workers(self) -> dict[str, dict[str, Any]]:
        answer = self.server.json("/workers")
        rows = answer.get("workers") if isinstance(answer, dict) else None
        if not isinstance(rows, list) or not all(isinstance(r, dict) and "url" in r for r in rows):
            raise ActuatorError(f"GET {self.server.url}/workers: not a list of workers")
        return {str(r["url"]): r for r in rows}

    def read(self, verb: str, target: Target) -> Settled:
        """Return whether the worker is there, and what it would be added with again."""
        row = self._workers().get(target.name)
        if row is None:
            return {"present": False}
        return {"present": True, **{k: row[k] for k in KEPT if row.get(k) is not None}}

    def wanted(self, verb: str, target: Target, before: Settled, weight_ratio: float) -> Settled:
        """Return absence."""
        return {"present": False}

    def requests(self, verb: str, target: Target, state: Settled) -> Sequence[Request]:
        """Return the one request; none where it is so already."""
        row = self._workers().get(target.name)
        if bool(state.get("present")) == (row is not None):
            return []
        if row is not None:
            return [
                Request(f"DELETE /workers/{quote(str(row.get('id', target.name)), safe='')}", self.server.url)
            ]
        spec = {"url": target.name, **{k: v for k, v in state.items() if k != "present"}}
        return [Request("POST /workers", self.server.url, json.dumps(spec))]

    def put(self, verb: str, target: Target, state: Settled) -> None:
        """Send it and wait until the gateway's list says so."""
        for request in self.requests(verb, target, state):
            method, _, path = request.what.partition(" ")
            self.server.send(method, path, request.body)
        deadline_s = time.monotonic() + self.settle_s
        while bool(state.get("present")) != (target.name in self._workers()):
            if time.monotonic() > deadline_s:
                raise ActuatorError(f"{self.server.url}: accepted, but not done within {self.settle_s:g} s")
            time.sleep(0.1)

    def unhealthy(self, names: Sequence[str]) -> set[str]:
        """Return the workers that are missing or marked unhealthy."""
        rows = self._workers()
        return {n for n in names if n not in rows or rows[n].get("is_healthy") is False}


ACTUATOR = SGLangRouter
