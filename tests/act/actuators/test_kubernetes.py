"""Against an API server in this process that speaks the real paths; no cluster runs here."""

import json
import subprocess
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from skewscope.act.actuator import ActuatorError
from skewscope.act.actuators.kubernetes import Kubernetes
from skewscope.act.settings import SettingsError
from tests.act.actuators import kube, servers
from tests.act.actuators.kube import OBJECTIVE, PODS, Cluster
from tests.act.actuators.servers import at, table


class Api:
    def __init__(self, cluster: Cluster, url: str, token: Path) -> None:
        self.cluster, self.url, self.token = cluster, url, token

    def make(self, **more: Any) -> Kubernetes:
        return Kubernetes(table(url=self.url, token_file=str(self.token), namespace="llm", **more))

    def pod(self, name: str = "v1") -> dict[str, Any]:
        return self.cluster.objects[f"{PODS}/{name}"]


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    (tmp_path / "token").write_text("secret\n")
    with kube.cluster() as (made, url):
        yield Api(made, url, tmp_path / "token")


PORTS = {"drain": "active_ports", "ports": ["8000", "8001"]}
LEVERS = {
    "readiness_gate": ("drain_endpoint", {}, "v1", {"status": "Unknown"}, {"status": "False"}),
    "label": ("drain_endpoint", {"drain": "label"}, "v1", {"label": None}, {"label": "out"}),
    "ports": ("drain_endpoint", PORTS, "v1:8001", {"active": True}, {"active": False}),
    "cordon": ("hand_over_node", {"node": "cordon"}, "v1", {"unschedulable": False}, {"unschedulable": True}),
    "taint": ("hand_over_node", {"node": "taint"}, "v1", {"taint": None}, {"taint": "PreferNoSchedule"}),
    "shed": ("shed_low_priority", {"objective": "batch"}, "v1", {"priority": 5}, {"priority": -100}),
}  # fmt: skip


@pytest.mark.parametrize("lever", LEVERS)
def test_every_lever_there_and_back(api: Api, lever: str) -> None:
    verb, settings, name, before, after = LEVERS[lever]
    made, target = api.make(**settings), at(name, node="n1")
    found = _contents(api.cluster)
    assert made.read(verb, target) == before
    assert made.wanted(verb, target, before, 0.0) == after
    for _ in range(2):
        made.put(verb, target, after)
        assert made.read(verb, target) == after
    changed = [p for p, o in _contents(api.cluster).items() if o != found[p]]
    assert len(changed) == 1
    made.put(verb, target, before)
    assert made.read(verb, target) == before
    if lever != "readiness_gate":  # its condition stays, as unknown
        assert _contents(api.cluster) == found


def _contents(cluster: Cluster) -> dict[str, Any]:
    out = deepcopy(cluster.objects)
    for o in out.values():
        del o["metadata"]["resourceVersion"]
        for part in ("labels", "annotations"):
            if not o["metadata"].get(part, True):
                del o["metadata"][part]
    return out


def test_what_is_sent_is_what_the_plan_shows(api: Api) -> None:
    for verb, settings, name, _, after in LEVERS.values():
        made, target = api.make(**settings), at(name, node="n1")
        (shown,) = made.requests(verb, target, after)
        made.put(verb, target, after)
        method, path, body = api.cluster.server.seen[-1]
        assert (f"{method} {path}", json.loads(body)) == (shown.what, json.loads(shown.body))


def test_other_taints_ports_and_labels_stay(api: Api) -> None:
    api.make().put("hand_over_node", at("v1", node="n1"), {"taint": "NoSchedule"})
    taints = api.cluster.objects["/api/v1/nodes/n1"]["spec"]["taints"]
    assert taints == [
        {"key": "a", "effect": "NoSchedule"},
        {"key": "skewscope.io/fail-slow", "value": "true", "effect": "NoSchedule"},
    ]
    api.pod()["metadata"]["annotations"] = {"llm-d.ai/active-ports": "8000,8001", "x": "y"}
    ranks = api.make(drain="active_ports", ports=["8000", "8001", "8002"])
    ranks.put("drain_endpoint", at("v1:8001"), {"active": False})
    assert api.pod()["metadata"]["annotations"] == {"llm-d.ai/active-ports": "8000", "x": "y"}


def test_a_change_in_between_is_a_conflict(api: Api) -> None:
    api.cluster.race = 1
    with pytest.raises(ActuatorError, match=r"409 .*modified"):
        api.make().put("hand_over_node", at("v1", node="n1"), {"taint": "NoSchedule"})


def test_a_group_is_evicted_once(api: Api) -> None:
    made, target = api.make(), at("v0,v1")
    before = made.read("restart_group", target)
    assert before == {"uids": {"v0": "uid-v0", "v1": "uid-v1"}}
    after = made.wanted("restart_group", target, before, 0.0)
    assert [r.what for r in made.requests("restart_group", target, after)] == [
        f"POST {PODS}/v0/eviction", f"POST {PODS}/v1/eviction",
    ]  # fmt: skip
    made.put("restart_group", target, after)
    assert (api.pod("v0")["metadata"]["uid"], api.pod("v2")["metadata"]["uid"]) == ("uid-v0-new", "uid-v2")
    assert made.VERBS["restart_group"] is False


def test_a_disruption_budget_refuses(api: Api) -> None:
    api.cluster.blocked = {"v1"}
    made, target = api.make(), at("v1")
    with pytest.raises(ActuatorError, match=r"429 .*disruption budget"):
        made.put(
            "restart_group",
            target,
            made.wanted("restart_group", target, made.read("restart_group", target), 0),
        )


def test_who_is_not_ready(api: Api) -> None:
    api.pod("v1")["status"]["conditions"] = []
    api.pod("v2")["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert api.make().unhealthy(["v0", "v1", "v2", "v9", "v0,v1"]) == {"v1", "v2", "v9", "v0,v1"}


def test_who_is_out_by_the_lever(api: Api) -> None:
    for settings, name in (({"drain": "label"}, "v0"), (PORTS, "v0:8001")):
        made = api.make(**settings)
        assert made.unhealthy([name]) == set()
        made.put("drain_endpoint", at(name), made.wanted("drain_endpoint", at(name), {}, 0.0))
        assert made.unhealthy([name]) == {name}
    assert api.make(**PORTS).unhealthy(["v0:8000"]) == set()


def test_what_would_do_nothing_is_refused(api: Api) -> None:
    api.pod()["spec"] = {}
    for verb, settings, target, words in (
        ("drain_endpoint", {}, at("v1"), "has no readinessGate"),
        ("drain_endpoint", {}, at("v9"), "404"),
        ("drain_endpoint", {"drain": "active_ports", "ports": ["1"]}, at("v1:2"), "not one of 1"),
        ("hand_over_node", {}, at("v1"), "has no node"),
    ):
        with pytest.raises(ActuatorError, match=words):
            api.make(**settings).read(verb, target)
    with pytest.raises(SettingsError, match="needs the list of all ports"):
        api.make(drain="active_ports")
    assert "shed_low_priority" not in api.make().VERBS


def test_the_token_is_read_from_its_file_each_time(api: Api) -> None:
    made = api.make()
    api.token.write_text("stale")
    with pytest.raises(ActuatorError, match="401"):
        made.unhealthy(["v0"])
    api.token.write_text("secret")
    assert made.unhealthy(["v0"]) == set()
    assert "secret" not in str(
        [r.lines() for r in made.requests("drain_endpoint", at("v1"), {"status": "False"})]
    )


def test_every_body_has_the_fields_of_the_published_api(api: Api) -> None:
    """By the models of the official client, which are generated from the OpenAPI document."""
    environment = servers.packages("kubernetes")
    group = api.make()
    group.put("restart_group", at("v0"), {"uids": {"v0": None}})
    for verb, settings, name, _, after in LEVERS.values():
        api.make(**settings).put(verb, at(name, node="n1"), after)
    sent = [(p, json.loads(b)) for m, p, b in api.cluster.server.seen if m != "GET" and p != OBJECTIVE]
    assert len(sent) == 6
    code = (
        "import sys, json\nfrom kubernetes import client\n"
        "def check(kind, data):\n"
        "    m = getattr(client, kind); names = {v: k for k, v in m.attribute_map.items()}\n"
        "    for k, v in data.items():\n"
        "        t = m.openapi_types[names[k]]\n"
        "        if t.startswith('list[V1'): [check(t[5:-1], x) for x in v]\n"
        "        elif t.startswith('V1') and v is not None: check(t, v)\n"
        "for path, body in json.load(sys.stdin):\n"
        "    kind = 'Eviction' if path.endswith('/eviction') else 'Node' if '/nodes/' in path else 'Pod'\n"
        "    check('V1' + kind, body)\n"
    )
    done = subprocess.run(
        servers.python("-W", "ignore", "-c", code),
        input=json.dumps(sent).encode(),
        env=environment,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
