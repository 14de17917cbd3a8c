"""Envoy by an EDS file (`eds_config: path_config_source`), in JSON.

Source: envoy/config/endpoint/v3/endpoint_components.proto (health_status, load_balancing_weight: at least 1)
and "Dynamic from filesystem": Envoy loads the file when another is renamed over it. Where an endpoint
picker chooses the host, weights are not used; draining is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from skewscope.act.actuator import ActuatorError, Request, Target
from skewscope.act.actuators import _files
from skewscope.act.settings import Table
from skewscope.core.action import Settled

TYPE = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
SERVING = ("UNKNOWN", "HEALTHY", "DEGRADED")
"""States in which Envoy sends requests; an absent state is UNKNOWN."""


class Envoy:
    """One cluster in one file. Endpoint names are address:port."""

    VERBS: Mapping[str, bool] = {"lower_weight": True, "drain_endpoint": True}

    def __init__(self, table: Table) -> None:
        self.file = Path(table.text("file"))
        self.cluster = table.text("cluster")

    def _load(self) -> dict[str, Any]:
        try:
            data = json.loads(_files.read(self.file))
            rows = dict(_endpoints(data, self.cluster))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ActuatorError(f"{self.file}: not an EDS response in JSON") from None
        if not rows:
            raise ActuatorError(f"{self.file}: no endpoints of cluster {self.cluster}")
        return dict(data)

    def _row(self, data: Mapping[str, Any], name: str) -> dict[str, Any]:
        row = dict(_endpoints(data, self.cluster)).get(name)
        if row is None:
            raise ActuatorError(f"{self.file}: cluster {self.cluster} has no endpoint {name}")
        return row

    def read(self, verb: str, target: Target) -> Settled:
        """Return weight or health status."""
        row = self._row(self._load(), target.name)
        if verb == "drain_endpoint":
            return {"health_status": row.get("health_status", "UNKNOWN")}
        weight = row.get("load_balancing_weight")
        if not isinstance(weight, int):
            raise ActuatorError(f"{self.file}: give every endpoint a load_balancing_weight, such as 100")
        return {"weight": weight}

    def wanted(self, verb: str, target: Target, before: Settled, weight_ratio: float) -> Settled:
        """Return the lower weight, at least 1, or DRAINING."""
        if verb == "drain_endpoint":
            return {"health_status": "DRAINING"}
        return {"weight": max(round(before["weight"] * weight_ratio), 1)}

    def _changed(self, verb: str, target: Target, state: Settled) -> str:
        data = self._load()
        row = self._row(data, target.name)
        if verb == "drain_endpoint":
            row["health_status"] = state["health_status"]
        else:
            row["load_balancing_weight"] = int(state["weight"])
        return json.dumps(data, indent=2, ensure_ascii=False) + "\n"

    def requests(self, verb: str, target: Target, state: Settled) -> Sequence[Request]:
        """Return the change of the file."""
        change = _files.diff(self.file, _files.read(self.file), self._changed(verb, target, state))
        return [Request("rename over", str(self.file), change)]

    def put(self, verb: str, target: Target, state: Settled) -> None:
        """Rename the changed file over the old one, also where it is so: Envoy may have missed the last."""
        _files.replace(self.file, self._changed(verb, target, state))

    def unhealthy(self, names: Sequence[str]) -> set[str]:
        """Return the endpoints that are missing or in a state that Envoy does not serve."""
        rows = dict(_endpoints(self._load(), self.cluster))
        return {n for n in names if n not in rows or rows[n].get("health_status", "UNKNOWN") not in SERVING}


def _endpoints(data: Mapping[str, Any], cluster: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (address:port, LbEndpoint) of one cluster; the rows may be changed in place."""
    for resource in data["resources"]:
        if resource.get("cluster_name") != cluster or resource.get("@type", TYPE) != TYPE:
            continue
        for locality in resource["endpoints"]:
            for row in locality["lb_endpoints"]:
                at = row["endpoint"]["address"]["socket_address"]
                yield f"{at['address']}:{at['port_value']}", row


ACTUATOR = Envoy
