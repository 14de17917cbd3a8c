"""An API server in this process: the real paths, patch types, conflicts, refusals; no cluster behind it."""

import contextlib
import json
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from tests.act.actuators.servers import Server, serve

PODS = "/api/v1/namespaces/llm/pods"
OBJECTIVE = "/apis/inference.networking.x-k8s.io/v1alpha2/namespaces/llm/inferenceobjectives/batch"


def pod(name: str, **more: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "llm", "uid": f"uid-{name}", "resourceVersion": "1", **more},
        "spec": {"readinessGates": [{"conditionType": "skewscope.io/in-rotation"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


class Cluster:
    """Objects by path. `blocked` pods are held by a disruption budget."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {f"{PODS}/{n}": pod(n) for n in ("v0", "v1", "v2")}
        node = {
            "metadata": {"name": "n1", "resourceVersion": "1"},
            "spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]},
        }
        self.objects["/api/v1/nodes/n1"] = node
        self.objects[OBJECTIVE] = {
            "metadata": {"name": "batch", "resourceVersion": "1"},
            "spec": {"priority": 5},
        }
        self.blocked: set[str] = set()
        self.race = 0
        self.server = Server()

    def reply(self, method: str, path: str, body: str) -> tuple[int, Any]:
        if self.server.headers[-1].get("Authorization") != "Bearer secret":
            return 401, {"kind": "Status", "message": "Unauthorized"}
        base = re.sub(r"/(status|eviction)$", "", path)
        found = self.objects.get(base)
        if found is None:
            return 404, {"kind": "Status", "message": f"{base} not found"}
        if method == "GET" and path == base:
            return 200, found
        if method == "POST" and path.endswith("/eviction"):
            return self._evict(base, found, json.loads(body))
        if method == "PATCH":
            return self._patch(path, base, found, json.loads(body))
        return 405, {"message": "method not allowed"}

    def _evict(self, base: str, found: dict[str, Any], body: dict[str, Any]) -> tuple[int, Any]:
        if (body["apiVersion"], body["kind"]) != ("policy/v1", "Eviction"):
            return 400, {"message": "not an Eviction"}
        if body["deleteOptions"]["preconditions"]["uid"] != found["metadata"]["uid"]:
            return 409, {"message": "the UID in the precondition does not match"}
        if found["metadata"]["name"] in self.blocked:
            return 429, {"message": "Cannot evict pod as it would violate the pod's disruption budget."}
        found["metadata"]["uid"] += "-new"  # its set makes another one at once
        return 201, {"kind": "Status", "status": "Success"}

    def _patch(self, path: str, base: str, found: dict[str, Any], body: dict[str, Any]) -> tuple[int, Any]:
        kind = self.server.headers[-1].get("Content-Type")
        if self.race:
            self.race -= 1
            self._bump(found)  # somebody else was faster
        version = body.get("metadata", {}).get("resourceVersion", found["metadata"]["resourceVersion"])
        if version != found["metadata"]["resourceVersion"]:
            return 409, {"message": "the object has been modified"}
        if kind == "application/strategic-merge-patch+json" and path.endswith("/status"):
            conditions = {c["type"]: c for c in found["status"]["conditions"]}
            conditions.update((c["type"], c) for c in body["status"]["conditions"])
            found["status"]["conditions"] = list(conditions.values())
        elif kind == "application/merge-patch+json" and path == base:
            self.objects[base] = found = merge(found, body)
        else:
            return 415, {"message": f"{kind} is not supported here"}
        self._bump(found)
        return 200, found

    def _bump(self, found: dict[str, Any]) -> None:
        found["metadata"]["resourceVersion"] = str(int(found["metadata"]["resourceVersion"]) + 1)


def merge(into: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """RFC 7396."""
    out = deepcopy(into)
    for key, value in patch.items():
        if value is None:
            out.pop(key, None)
        elif isinstance(value, dict):
            out[key] = merge(out.get(key) or {}, value)
        else:
            out[key] = value
    return out


@contextlib.contextmanager
def cluster() -> Iterator[tuple[Cluster, str]]:
    made = Cluster()
    with serve(lambda *request: made.reply(*request)) as server:
        made.server = server
        yield made, server.url
