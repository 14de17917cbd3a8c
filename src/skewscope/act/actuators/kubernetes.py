"""Kubernetes by its API: a pod or port out of rotation, a group evicted, a node kept from new work.

Paths, patch types and fields are those of the Kubernetes API (core/v1, policy/v1) and of the Gateway API
inference extension (InferenceObjective). What rotation means depends on who routes: llm-d's endpoint picker
drops a pod when it is not ready, when a label of the pool's selector is gone, and single ports by the
annotation `llm-d.ai/active-ports`; vLLM's production stack does not look at readiness gates. Lists (taints)
and the annotation are changed with the resource version that was read, so that a change in between is a
conflict and not lost.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from skewscope.act.actuator import ActuatorError, Request, Target
from skewscope.act.actuators._http import Server
from skewscope.act.settings import SettingsError, Table
from skewscope.core.action import Settled

STRATEGIC = "application/strategic-merge-patch+json"
MERGE = "application/merge-patch+json"
PORTS = "llm-d.ai/active-ports"
OBJECTIVES = "/apis/inference.networking.x-k8s.io/v1alpha2"


class Kubernetes:
    """One namespace. Endpoint names are pod names; `pod:port` for active ports; `a,b` for a group."""

    def __init__(self, table: Table) -> None:
        self.server = Server.of(table)
        self.namespace = table.text("namespace", "default")
        self.drain = table.text("drain", "readiness_gate", ("readiness_gate", "label", "active_ports"))
        self.node = table.text("node", "taint", ("taint", "cordon"))
        self.gate = table.text("gate", "skewscope.io/in-rotation")
        self.label = table.text("label", "skewscope.io/rotation")
        self.label_out = table.text("label_out", "out")
        self.taint = table.text("taint", "skewscope.io/fail-slow")
        self.effect = table.text(
            "taint_effect", "PreferNoSchedule", ("PreferNoSchedule", "NoSchedule", "NoExecute")
        )
        self.ports = table.texts("ports", [])
        self.objective = table.text("objective", "")
        self.shed_priority = int(table.number("shed_priority", -(2**31), 2**31, -100))
        if self.drain == "active_ports" and not self.ports:
            raise SettingsError(f"{table.path}.ports: active_ports needs the list of all ports")
        self.VERBS: Mapping[str, bool] = {
            "drain_endpoint": True,
            "hand_over_node": True,
            "restart_group": False,
            **({"shed_low_priority": True} if self.objective else {}),
        }

    def _path(self, verb: str, target: Target, name: str = "") -> str:
        if verb == "hand_over_node":
            if not target.node:
                raise ActuatorError(f"endpoint {target.id} has no node in act.toml")
            return f"/api/v1/nodes/{quote(target.node, safe='')}"
        space = quote(self.namespace, safe="")
        if verb == "shed_low_priority":
            return f"{OBJECTIVES}/namespaces/{space}/inferenceobjectives/{quote(self.objective, safe='')}"
        return f"/api/v1/namespaces/{space}/pods/{quote(name or self._pod(target), safe='')}"

    def _pod(self, target: Target) -> str:
        return target.name.partition(":")[0] if self.drain == "active_ports" else target.name.split(",")[0]

    def _port(self, target: Target) -> str:
        port = target.name.partition(":")[2]
        if port not in self.ports:
            raise ActuatorError(f"{target.name}: the port is not one of {', '.join(self.ports)}")
        return port

    def _get(self, path: str) -> dict[str, Any]:
        got = self.server.json(path)
        if not isinstance(got, dict) or not isinstance(got.get("metadata"), dict):
            raise ActuatorError(f"GET {self.server.url}{path}: not an object with metadata")
        return got

    def read(self, verb: str, target: Target) -> Settled:
        """Return the state of the lever that the verb uses."""
        if verb == "restart_group":
            return {"uids": {n: self._uid(verb, target, n) for n in target.name.split(",")}}
        got = self._get(self._path(verb, target))
        if verb == "shed_low_priority":
            return {"priority": got.get("spec", {}).get("priority")}
        if verb == "hand_over_node":
            spec = got.get("spec", {})
            if self.node == "cordon":
                return {"unschedulable": bool(spec.get("unschedulable", False))}
            return {"taint": next((t["effect"] for t in _taints(got) if t.get("key") == self.taint), None)}
        if self.drain == "label":
            return {"label": (got["metadata"].get("labels") or {}).get(self.label)}
        if self.drain == "active_ports":
            return {"active": self._port(target) in self._active(got)}
        return {"status": self._gate_status(got, target)}

    def _uid(self, verb: str, target: Target, name: str) -> str | None:
        status, text = self.server.call("GET", self._path(verb, target, name))
        if status == 404:
            return None
        try:
            return str(json.loads(text)["metadata"]["uid"])
        except (ValueError, KeyError, TypeError):
            raise ActuatorError(f"pod {name}: {status} and no uid") from None

    def _gate_status(self, pod: Mapping[str, Any], target: Target) -> str:
        gates = [g.get("conditionType") for g in pod.get("spec", {}).get("readinessGates") or []]
        if self.gate not in gates:
            raise ActuatorError(f"pod {self._pod(target)} has no readinessGate {self.gate}")
        conditions = pod.get("status", {}).get("conditions") or []
        return next((str(c["status"]) for c in conditions if c.get("type") == self.gate), "Unknown")

    def _active(self, pod: Mapping[str, Any]) -> list[str]:
        """Return the active ports; without the annotation all are."""
        text = (pod["metadata"].get("annotations") or {}).get(PORTS)
        return list(self.ports) if text is None else [p.strip() for p in text.split(",") if p.strip()]

    def wanted(self, verb: str, target: Target, before: Settled, weight_ratio: float) -> Settled:
        """Return out of rotation, kept from new work, a lower priority, or gone."""
        if verb == "restart_group":
            return {"uids": dict.fromkeys(before["uids"])}
        if verb == "shed_low_priority":
            return {"priority": self.shed_priority}
        if verb == "hand_over_node":
            return {"unschedulable": True} if self.node == "cordon" else {"taint": self.effect}
        out: dict[str, Settled] = {
            "label": {"label": self.label_out},
            "active_ports": {"active": False},
            "readiness_gate": {"status": "False"},
        }
        return out[self.drain]

    def _patch(self, verb: str, target: Target, state: Settled) -> tuple[str, str, dict[str, Any]]:
        """Return the path, the patch type and the patch."""
        path = self._path(verb, target)
        if verb == "shed_low_priority":
            return path, MERGE, {"spec": {"priority": state["priority"]}}
        if verb == "hand_over_node":
            if self.node == "cordon":
                return path, MERGE, {"spec": {"unschedulable": state["unschedulable"] or None}}
            return path, MERGE, self._taint_patch(self._get(path), state["taint"])
        if self.drain == "label":
            return path, MERGE, {"metadata": {"labels": {self.label: state["label"]}}}
        if self.drain == "active_ports":
            return path, MERGE, self._ports_patch(self._get(path), self._port(target), state["active"])
        condition = {
            "type": self.gate,
            "status": state["status"],
            "reason": "Skewscope",
            "message": f"{target.action}: {target.reason}",
        }
        return f"{path}/status", STRATEGIC, {"status": {"conditions": [condition]}}

    def _taint_patch(self, node: Mapping[str, Any], effect: str | None) -> dict[str, Any]:
        kept = [t for t in _taints(node) if t.get("key") != self.taint]
        kept += [{"key": self.taint, "value": "true", "effect": effect}] if effect else []
        version = node["metadata"].get("resourceVersion")
        return {"metadata": {"resourceVersion": version}, "spec": {"taints": kept}}

    def _ports_patch(self, pod: Mapping[str, Any], port: str, active: bool) -> dict[str, Any]:
        chosen = {*self._active(pod), port} if active else set(self._active(pod)) - {port}
        text = None if chosen == set(self.ports) else ",".join(p for p in self.ports if p in chosen)
        version = pod["metadata"].get("resourceVersion")
        return {"metadata": {"resourceVersion": version, "annotations": {PORTS: text}}}

    def requests(self, verb: str, target: Target, state: Settled) -> Sequence[Request]:
        """Return the patch, or one eviction per pod of the group."""
        if verb == "restart_group":
            alive = {n: self._uid(verb, target, n) for n, uid in state["uids"].items() if uid is None}
            return [self._eviction(verb, target, n, uid) for n, uid in alive.items() if uid]
        path, _, patch = self._patch(verb, target, state)
        return [Request(f"PATCH {path}", self.server.url, json.dumps(patch, indent=1))]

    def _eviction(self, verb: str, target: Target, name: str, uid: str) -> Request:
        """Return an eviction of the pod as it is now; one that came after it is not evicted."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": self.namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        path = f"{self._path(verb, target, name)}/eviction"
        return Request(f"POST {path}", self.server.url, json.dumps(body, indent=1))

    def put(self, verb: str, target: Target, state: Settled) -> None:
        """Send it. A PodDisruptionBudget may refuse an eviction (429)."""
        if verb == "restart_group":
            for request in self.requests(verb, target, state):
                self.server.send("POST", request.what.partition(" ")[2], request.body)
            return
        path, kind, patch = self._patch(verb, target, state)
        self.server.send("PATCH", path, json.dumps(patch), {"Content-Type": kind})

    def unhealthy(self, names: Sequence[str]) -> set[str]:
        """Return the pods that are missing, ending, not ready, or out by the lever that is used here."""
        return {name for name in names if not all(self._serves(pod) for pod in name.split(","))}

    def _serves(self, pod: str) -> bool:
        target = Target(pod, pod)
        path = self._path("drain_endpoint", target)
        status, _ = self.server.call("GET", path)
        if status == 404:
            return False
        got = self._get(path)
        if self.drain == "active_ports" and self._port(target) not in self._active(got):
            return False
        marked = (got["metadata"].get("labels") or {}).get(self.label) == self.label_out
        return _ready(got) and not (self.drain == "label" and marked)


def _taints(node: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list(node.get("spec", {}).get("taints") or [])


def _ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions") or []
    ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions)
    return ready and not pod["metadata"].get("deletionTimestamp")


ACTUATOR = Kubernetes
