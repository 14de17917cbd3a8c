"""A webhook: one JSON object when an action begins and one when it ends.

It cannot be read back; the receiver tells repeats by the `Idempotency-Key` header, which is the action's id
and state.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from skewscope.act.actuator import Request, Target
from skewscope.act.actuators._http import Server
from skewscope.act.settings import Table
from skewscope.core.action import Settled


class Webhook:
    """One receiver. Endpoint names are passed on."""

    VERBS: Mapping[str, bool] = {"notify": True}

    def __init__(self, table: Table) -> None:
        self.server = Server.of(table)
        self.path = table.text("path", "/")

    def read(self, verb: str, target: Target) -> Settled:
        """Return nothing: there is no way to ask."""
        return {}

    def wanted(self, verb: str, target: Target, before: Settled, weight_ratio: float) -> Settled:
        """Return that it fires."""
        return {"firing": True}

    def requests(self, verb: str, target: Target, state: Settled) -> Sequence[Request]:
        """Return the one request."""
        body = {
            "schema": "skewscope.action/1",
            "id": target.action,
            "state": "firing" if state.get("firing") else "resolved",
            "endpoint": target.id,
            "name": target.name,
            "reason": target.reason,
            "ts_ns": target.now_ns,
            "until_ns": target.until_ns,
        }
        return [Request(f"POST {self.path}", self.server.url, json.dumps(body, indent=1))]

    def put(self, verb: str, target: Target, state: Settled) -> None:
        """Send it."""
        key = f"{target.action}-{'firing' if state.get('firing') else 'resolved'}"
        for request in self.requests(verb, target, state):
            self.server.send("POST", self.path, request.body, {"Idempotency-Key": key})

    def unhealthy(self, names: Sequence[str]) -> set[str]:
        """Return nobody: a webhook knows nothing of rotation."""
        return set()


ACTUATOR = Webhook
