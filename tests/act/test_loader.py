import importlib
from typing import Any

import pytest

from skewscope.act.actuator import Actuator
from skewscope.act.loader import build, kinds
from skewscope.act.settings import SettingsError
from skewscope.core.action import VERBS

SETTINGS: dict[str, dict[str, Any]] = {
    "alertmanager": {"url": "http://a"},
    "envoy": {"file": "f", "cluster": "c"},
    "haproxy": {"socket": "/s", "backend": "b"},
    "kubernetes": {"url": "https://a"},
    "nginx": {"file": "f", "upstream": "u"},
    "nvsentinel": {},
    "production_stack": {"file": "f"},
    "sglang_router": {"url": "http://a"},
    "vllm_engine": {"lever": "sleep"},
    "vllm_router": {"url": "http://a"},
    "webhook": {"url": "http://a"},
}


@pytest.mark.parametrize("kind", kinds())
def test_every_actuator_is_one(kind: str) -> None:
    made = build({"x": {"name": "x", "kind": kind, **SETTINGS[kind]}})["x"]
    assert isinstance(made, Actuator)
    assert made.VERBS
    assert set(made.VERBS) <= set(VERBS)
    assert importlib.import_module(f"skewscope.act.actuators.{kind}").__doc__
    with pytest.raises(SettingsError, match=r"actuator\[0\]\.colour: unknown key"):
        build({"x": {"name": "x", "kind": kind, "colour": 1, **SETTINGS[kind]}})


def test_an_unknown_kind() -> None:
    with pytest.raises(SettingsError, match=r"actuator\[0\]\.kind: 'f5' is not one of alertmanager, "):
        build({"x": {"name": "x", "kind": "f5"}})
