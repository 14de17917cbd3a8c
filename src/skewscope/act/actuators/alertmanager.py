"""Alertmanager: an alert that fires as long as the action is in force, and ends by itself in time.

Source: Alertmanager's OpenAPI (api/v2): POST /api/v2/alerts, GET /api/v2/alerts?filter=... An alert is told
by its labels, so repeats change nothing; `endsAt` in the past resolves it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from urllib.parse import quote

from skewscope.act.actuator import ActuatorError, Request, Target
from skewscope.act.actuators._http import Server
from skewscope.act.settings import Table
from skewscope.core.action import Settled

ALERT = "SkewscopeIncident"


class Alertmanager:
    """One Alertmanager. Endpoint names become labels."""

    VERBS: Mapping[str, bool] = {"notify": True}

    def __init__(self, table: Table) -> None:
        self.server = Server.of(table)
        labels = table.table("labels", {})
        self.labels = {k: labels.text(k) for k in labels.keys()}  # noqa: SIM118  not a dictionary

    def read(self, verb: str, target: Target) -> Settled:
        """Return whether the alert is active, silenced or not."""
        filters = (f'alertname="{ALERT}"', f"endpoint={json.dumps(target.id)}")
        query = "&".join(f"filter={quote(f, safe='')}" for f in filters)
        found = self.server.json(f"/api/v2/alerts?{query}")
        if not isinstance(found, list):
            raise ActuatorError(f"{self.server.url}: not a list of alerts")
        return {"firing": len(found) > 0}

    def wanted(self, verb: str, target: Target, before: Settled, weight_ratio: float) -> Settled:
        """Return that it fires."""
        return {"firing": True}

    def requests(self, verb: str, target: Target, state: Settled) -> Sequence[Request]:
        """Return the one request."""
        ends_ns = target.until_ns if state["firing"] else target.now_ns
        alert = {
            "labels": {**self.labels, "alertname": ALERT, "endpoint": target.id},
            "annotations": {"summary": f"{target.name}: {target.reason}", "action": target.action},
            "startsAt": _rfc3339(target.now_ns),
            "endsAt": _rfc3339(ends_ns),
        }
        return [Request("POST /api/v2/alerts", self.server.url, json.dumps([alert], indent=1))]

    def put(self, verb: str, target: Target, state: Settled) -> None:
        """Send it."""
        for request in self.requests(verb, target, state):
            self.server.send("POST", "/api/v2/alerts", request.body)

    def unhealthy(self, names: Sequence[str]) -> set[str]:
        """Return nobody: Alertmanager knows nothing of rotation."""
        return set()


def _rfc3339(ns: int) -> str:
    return datetime.fromtimestamp(ns / 1e9, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


ACTUATOR = Alertmanager
