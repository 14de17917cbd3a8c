"""The router of vLLM's production stack by its dynamic configuration file (`--dynamic-config-json`).

The router reads the file every ten seconds and swaps its whole configuration, so the effect comes up to
ten seconds after the change. Lists that run parallel to `static_backends` lose and regain the same place.
Source: production-stack, src/vllm_router/dynamic_config.py. Discovery must be `static`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skewscope.act.actuator import ActuatorError, Request, Target
from skewscope.act.actuators import _files
from skewscope.act.settings import Table
from skewscope.core.action import Settled

BACKENDS = "static_backends"
BESIDE = ("static_models", "static_model_labels", "static_model_types")
"""Lists with one entry per backend, in the same order."""


class ProductionStack:
    """One file. Endpoint names are backend URLs."""

    VERBS: Mapping[str, bool] = {"drain_endpoint": True}

    def __init__(self, table: Table) -> None:
        self.file = Path(table.text("file"))

    def _config(self) -> dict[str, Any]:
        try:
            config = json.loads(_files.read(self.file))
            if not isinstance(config[BACKENDS], (str, list)):
                raise TypeError
        except (ValueError, KeyError, TypeError):
            raise ActuatorError(f"{self.file}: not a JSON object with {BACKENDS}") from None
        count = len(_split(config[BACKENDS]))
        for key in BESIDE:
            if config.get(key) and len(_split(config[key])) != count:
                raise ActuatorError(f"{self.file}: {key} has not one entry per backend ({count})")
        return dict(config)

    def read(self, verb: str, target: Target) -> Settled:
        """Return whether the backend is listed, and its entries in the lists beside."""
        config = self._config()
        urls = _split(config[BACKENDS])
        if target.name not in urls:
            return {"present": False}
        at = urls.index(target.name)
        return {"present": True, **{k: _split(config[k])[at] for k in BESIDE if config.get(k)}}

    def wanted(self, verb: str, target: Target, before: Settled, weight_ratio: float) -> Settled:
        """Return absence."""
        return {"present": False}

    def _changed(self, target: Target, state: Settled) -> dict[str, Any]:
        config = self._config()
        urls = _split(config[BACKENDS])
        listed = target.name in urls
        if listed == state.get("present", False):
            return config
        for key in (BACKENDS, *BESIDE):
            if not config.get(key):
                continue
            values = _split(config[key])
            if listed:
                del values[urls.index(target.name)]
            else:
                values.append(target.name if key == BACKENDS else str(state.get(key, values[-1])))
            config[key] = ",".join(values) if isinstance(config[key], str) else values
        return config

    def requests(self, verb: str, target: Target, state: Settled) -> Sequence[Request]:
        """Return the change of the file."""
        before, after = _files.read(self.file), _text(self._changed(target, state))
        return [Request("rewrite", str(self.file), _files.diff(self.file, before, after))]

    def put(self, verb: str, target: Target, state: Settled) -> None:
        """Replace the file where it says otherwise."""
        after = self._changed(target, state)
        if after != self._config():
            _files.replace(self.file, _text(after))

    def unhealthy(self, names: Sequence[str]) -> set[str]:
        """Return the backends that are not listed."""
        return set(names) - set(_split(self._config()[BACKENDS]))


def _split(value: Any) -> list[str]:
    parts = value.split(",") if isinstance(value, str) else [str(v) for v in value]
    return [p.strip() for p in parts]


def _text(config: Mapping[str, Any]) -> str:
    return json.dumps(config, indent=2, ensure_ascii=False) + "\n"


ACTUATOR = ProductionStack
