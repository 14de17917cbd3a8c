"""The file format only: the router of the production stack does not run here."""

import json
from pathlib import Path
from typing import Any

import pytest

from skewscope.act.actuator import ActuatorError
from skewscope.act.actuators.production_stack import ProductionStack
from tests.act.actuators.servers import at, table

CONFIG = {
    "service_discovery": "static",
    "routing_logic": "roundrobin",
    "static_backends": "http://a:1,http://b:2,http://c:3",
    "static_models": "m1,m2,m3",
    "static_model_labels": "x,y,z",
}


def make(folder: Path, config: Any) -> ProductionStack:
    (folder / "dyn.json").write_text(config if isinstance(config, str) else json.dumps(config))
    return ProductionStack(table(file=str(folder / "dyn.json")))


def test_a_backend_goes_with_its_model_and_comes_back(tmp_path: Path) -> None:
    made, name = make(tmp_path, CONFIG), at("http://b:2")
    before = made.read("drain_endpoint", name)
    assert before == {"present": True, "static_models": "m2", "static_model_labels": "y"}
    for _ in range(2):
        made.put("drain_endpoint", name, {"present": False})
        now = json.loads(made.file.read_text())
        assert (now["static_backends"], now["static_models"]) == ("http://a:1,http://c:3", "m1,m3")
    assert made.unhealthy(["http://a:1", "http://b:2"]) == {"http://b:2"}
    for _ in range(2):
        made.put("drain_endpoint", name, before)
        now = json.loads(made.file.read_text())
        assert (now["static_backends"], now["static_models"]) == (
            "http://a:1,http://c:3,http://b:2",
            "m1,m3,m2",
        )
    assert made.read("drain_endpoint", name) == before
    assert now["static_model_labels"] == "x,z,y"
    assert now["routing_logic"] == "roundrobin"


def test_lists_that_do_not_run_parallel_are_not_touched(tmp_path: Path) -> None:
    made = make(tmp_path, {**CONFIG, "static_models": "m1,m2"})
    with pytest.raises(ActuatorError, match="static_models has not one entry per backend"):
        made.put("drain_endpoint", at("http://b:2"), {"present": False})


def test_lists_stay_lists(tmp_path: Path) -> None:
    made = make(tmp_path, {"static_backends": ["http://a:1", "http://b:2"]})
    (request,) = made.requests("drain_endpoint", at("http://a:1"), {"present": False})
    assert '+    "http://b:2"' in request.body
    made.put("drain_endpoint", at("http://a:1"), {"present": False})
    assert json.loads(made.file.read_text()) == {"static_backends": ["http://b:2"]}


@pytest.mark.parametrize("config", ["", "[]", "{}", '{"static_backends": 3}', "service_discovery: static"])
def test_nonsense_is_one_line(tmp_path: Path, config: str) -> None:
    with pytest.raises(ActuatorError, match="not a JSON object with static_backends"):
        make(tmp_path, config).unhealthy([])
