import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from skewscope.act.actuator import ActuatorError
from skewscope.act.actuators.envoy import TYPE, Envoy
from tests.act.actuators import servers
from tests.act.actuators.servers import at, table


def eds(weights: list[int | None]) -> dict[str, Any]:
    rows = [
        {
            "endpoint": {"address": {"socket_address": {"address": f"10.0.0.{i}", "port_value": 8000}}},
            **({} if w is None else {"load_balancing_weight": w}),
        }
        for i, w in enumerate(weights)
    ]
    resource = {"@type": TYPE, "cluster_name": "llm", "endpoints": [{"priority": 0, "lb_endpoints": rows}]}
    other = {"@type": TYPE, "cluster_name": "other", "endpoints": [{"lb_endpoints": rows[:1]}]}
    return {"version_info": "7", "resources": [other, resource]}


@pytest.fixture
def made(tmp_path: Path) -> Envoy:
    (tmp_path / "eds.json").write_text(json.dumps(eds([100, 100, None])))
    return Envoy(table(file=str(tmp_path / "eds.json"), cluster="llm"))


def test_weight_and_drain_there_and_back(made: Envoy) -> None:
    found = json.loads(made.file.read_text())
    name = at("10.0.0.1:8000")
    for verb, before, after in (
        ("lower_weight", {"weight": 100}, {"weight": 25}),
        ("drain_endpoint", {"health_status": "UNKNOWN"}, {"health_status": "DRAINING"}),
    ):
        assert made.read(verb, name) == before
        assert made.wanted(verb, name, before, 0.25) == after
        for _ in range(2):
            made.put(verb, name, after)
        assert made.read(verb, name) == after
        assert made.unhealthy(["10.0.0.0:8000", "10.0.0.1:8000"]) == (
            {name.name} if verb == "drain_endpoint" else set()
        )
        made.put(verb, name, before)
    now = json.loads(made.file.read_text())
    assert now["resources"][1]["endpoints"][0]["lb_endpoints"][1].pop("health_status") == "UNKNOWN"
    assert now == found


def test_the_file_is_replaced_not_written_into(made: Envoy) -> None:
    before = made.file.stat().st_ino
    made.put("lower_weight", at("10.0.0.1:8000"), {"weight": 25})
    assert made.file.stat().st_ino != before
    assert list(made.file.parent.iterdir()) == [made.file]


def test_a_weight_is_at_least_one_and_must_be_there(made: Envoy) -> None:
    assert made.wanted("lower_weight", at("x"), {"weight": 2}, 0.01) == {"weight": 1}
    with pytest.raises(ActuatorError, match="give every endpoint a load_balancing_weight"):
        made.read("lower_weight", at("10.0.0.2:8000"))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"resources": [{}]}', '{"resources": 3}', '{"resources": []}']
)
def test_nonsense_is_one_line(made: Envoy, text: str) -> None:
    made.file.write_text(text)
    with pytest.raises(ActuatorError):
        made.unhealthy([])
    with pytest.raises(ActuatorError):
        made.put("drain_endpoint", at("10.0.0.1:8000"), {"health_status": "DRAINING"})
    assert made.file.read_text() == text


def test_unknown_endpoints(made: Envoy) -> None:
    with pytest.raises(ActuatorError, match=r"no endpoint 10\.0\.0\.9:1"):
        made.read("drain_endpoint", at("10.0.0.9:1"))


def test_envoys_own_message_definitions_accept_every_file(made: Envoy) -> None:
    """With xds-protos, the published protobuf definitions; no Envoy runs here."""
    environment = servers.packages("envoy")
    files = [made.file.read_text()]
    for verb, state in (("lower_weight", {"weight": 25}), ("drain_endpoint", {"health_status": "DRAINING"})):
        made.put(verb, at("10.0.0.1:8000"), state)
        files.append(made.file.read_text())
    code = (
        "import sys, json\nfrom google.protobuf import json_format\n"
        "from envoy.service.discovery.v3 import discovery_pb2\n"
        "from envoy.config.endpoint.v3 import endpoint_pb2\n"
        "for text in json.load(sys.stdin):\n"
        "    got = json_format.Parse(text, discovery_pb2.DiscoveryResponse())\n"
        "    cla = endpoint_pb2.ClusterLoadAssignment(); got.resources[1].Unpack(cla)\n"
        "    row = cla.endpoints[0].lb_endpoints[1]\n"
        "    print(row.load_balancing_weight.value, row.health_status)\n"
    )
    done = subprocess.run(
        servers.python("-W", "ignore", "-c", code),
        input=json.dumps(files).encode(),
        env=environment,
        capture_output=True,
        check=False,
    )
    assert done.stdout.decode().split() == ["100", "0", "25", "0", "25", "3"], done.stderr.decode()
