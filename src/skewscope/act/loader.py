"""Finds the actuators: every module of `act/actuators` that defines ACTUATOR; its name is the kind."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any

import skewscope.act.actuators as package
from skewscope.act.actuator import Actuator
from skewscope.act.settings import Table


def kinds() -> list[str]:
    """Return the kinds that there are."""
    return sorted(m.name for m in pkgutil.iter_modules(package.__path__) if not m.name.startswith("_"))


def build(settings: Mapping[str, Mapping[str, Any]]) -> dict[str, Actuator]:
    """Return the actuators of an act.toml by their names; raises SettingsError. Sends nothing."""
    out = {}
    for position, (name, data) in enumerate(settings.items()):
        table = Table(f"actuator[{position}]", data)
        table.text("name")
        kind = table.text("kind", one_of=kinds())
        made: Actuator = importlib.import_module(f"{package.__name__}.{kind}").ACTUATOR(table)
        table.done()
        out[name] = made
    return out
