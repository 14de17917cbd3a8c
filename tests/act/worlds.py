"""What the tests of `act` share: settings, reports, and an actuator whose world is a dictionary."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from skewscope.act import settings
from skewscope.act.actuator import ActuatorError, Request, Target
from skewscope.act.intake import Intake, Trigger, Witness
from skewscope.act.settings import Settings

NS = 1_000_000_000
T0 = 1_800_000_000 * NS


class Crash(BaseException):
    """The process dies here."""


class World:
    """An actuator over a dictionary; `crash_in` and `refuse_in` count down calls of put."""

    VERBS: Mapping[str, bool] = {"lower_weight": True, "drain_endpoint": True, "restart_group": False}

    def __init__(self, names: Sequence[str]) -> None:
        self.weights = dict.fromkeys(names, 100)
        self.draining: set[str] = set()
        self.restarted: list[str] = []
        self.puts = 0
        self.crash_before = self.crash_after = self.refuse = 0
        self.down: set[str] = set()
        self.silent = False

    def read(self, verb: str, target: Target) -> Mapping[str, Any]:
        if self.silent:
            raise ActuatorError("no answer")
        if verb == "restart_group":
            return {"restarts": self.restarted.count(target.name)}
        if verb == "drain_endpoint":
            return {"drain": target.name in self.draining}
        return {"weight": self.weights[target.name]}

    def wanted(
        self, verb: str, target: Target, before: Mapping[str, Any], weight_ratio: float
    ) -> Mapping[str, Any]:
        if verb == "restart_group":
            return {"restarts": before["restarts"] + 1}
        return (
            {"drain": True}
            if verb == "drain_endpoint"
            else {"weight": max(round(before["weight"] * weight_ratio), 1)}
        )

    def requests(self, verb: str, target: Target, state: Mapping[str, Any]) -> Sequence[Request]:
        return [Request(f"{verb} {json.dumps(dict(state))}", "world")]

    def put(self, verb: str, target: Target, state: Mapping[str, Any]) -> None:
        self.puts += 1
        if self.crash_before == self.puts:
            raise Crash
        if self.silent or self.refuse == self.puts:
            raise ActuatorError("refused")
        if verb == "restart_group":
            if self.restarted.count(target.name) < state["restarts"]:
                self.restarted.append(target.name)
        elif verb == "drain_endpoint":
            (self.draining.add if state["drain"] else self.draining.discard)(target.name)
        else:
            self.weights[target.name] = state["weight"]
        if self.crash_after == self.puts:
            raise Crash

    def unhealthy(self, names: Sequence[str]) -> set[str]:
        if self.silent:
            raise ActuatorError("no answer")
        return self.down & set(names)

    def changed(self) -> set[str]:
        """The endpoints that are not as they were."""
        return self.draining | {n for n, w in self.weights.items() if w != 100}


def address(i: int) -> str:
    return f"10.0.{i}.1:8000"


def act_toml(
    endpoints: int = 3, pools: int = 1, more: str = "", mode: str = "auto", learn_s: float = 0
) -> str:
    """Return an act.toml with pools of the given size, all behind one actuator called `edge`."""
    head = f'mode = "{mode}"\nlearn_s = {learn_s}\n{more}\n[rule.default]\nweight_ratio = 0.25\n'
    out = [head, '[[actuator]]\nname = "edge"\nkind = "webhook"\nurl = "http://127.0.0.1:9"\n']
    for p in range(pools):
        out.append(f'[[pool]]\nname = "p{p}"\nactuators = ["edge"]\n')
        for e in range(endpoints):
            i = p * endpoints + e
            out.append(f'[[pool.endpoints]]\nid = "{address(i)}"\nhosts = ["10.0.{i}.2"]\nname = "r{i}"\n')
    return "".join(out)


def make(**options: Any) -> Settings:
    return settings.parse(act_toml(**options))


WITNESS = Witness("n1", "east_west", "m")
SECOND = Witness("lg", "north_south", "e")


def trigger(endpoint: int = 0, **changes: Any) -> Trigger:
    """Return a sure straggler on one endpoint, twice as slow as usual."""
    fields: dict[str, Any] = {
        "incident": f"c20-{endpoint}",
        "condition": "c20",
        "culprit": f"10.0.{endpoint}.2",
        "culprit_kind": "rank",
        "culprit_probability": 0.95,
        "causes": {"host_cpu": 0.6, "gpu": 0.4},
        "score": 0.99,
        "onset_ns": T0 - NS,
        "ended": False,
        "witnesses": (WITNESS, SECOND),
        "metric": "ttft_s",
        "usual": 0.1,
        "now": 0.3,
    }
    return Trigger(**{**fields, **changes})


def news(*triggers: Trigger, at_ns: int = T0, seen_s: float = 20) -> Intake:
    return Intake(at_ns - int(seen_s * NS), at_ns, triggers, True)


def report(**incident: Any) -> dict[str, Any]:
    """Return a report as `diagnose --json` prints it, with one incident."""
    span = {"file": "n1.pcap", "first": 1, "last": 9, "packets": 4, "display_filter": "ip.addr == 10.0.0.2"}
    evidence = {"name": "own_s", "value": 0.1, "unit": "s", "baseline": None, "packets": [], "spans": [span]}
    finding = {"condition": "c20", "scope": "member", "key": "10.0.0.2", "score": 0.9, "evidence": [evidence]}
    fields: dict[str, Any] = {
        "id": "c20-1",
        "condition": "c20",
        "score": 0.99,
        "onset_ns": T0 - NS,
        "end_ns": None,
        "culprits": [{"kind": "rank", "id": "10.0.0.2", "name": "rank", "probability": 0.95}],
        "causes": [{"class": "host_cpu", "probability": 1.0}],
        "impact": {"ttft_s": [None, 0.3], "chunk_gap_s": [0.1, 0.3]},
        "findings": [finding],
    }
    return {
        "schema": "skewscope.report/1",
        "span_ns": [T0 - 20 * NS, T0],
        "inputs": [{"path": "n1.pcap", "host": "10.0.0.2"}, {"path": "lg.pcap", "host": ""}],
        "hosts": [{"address": "10.0.0.1", "roles": ["engine"]}],
        "incidents": [{**fields, **incident}],
    }
