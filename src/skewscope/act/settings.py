"""act.toml: what may be done, where and when, as validated data. Errors are one line with the key's path."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from skewscope.core.action import MODES, VERBS
from skewscope.core.entry import CAUSES


class SettingsError(ValueError):
    """A setting that is not valid; the message is one line and names the key."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))  # quoted keys may hold line ends


@dataclass(frozen=True)
class Limits:
    """How much may be touched at a time, per hour and per endpoint."""

    pool_share_ratio: float
    actions_per_hour: int
    cool_down_s: float
    max_extra_load_ratio: float
    max_report_age_s: float
    irreversible: bool


@dataclass(frozen=True)
class EvidenceNeeded:
    """How sure a report must be."""

    min_score: float
    min_culprit_probability: float
    min_cause_probability: float
    min_benefit_ratio: float


@dataclass(frozen=True)
class Verify:
    """When and how the effect is judged; times count from the moment of applying."""

    settle_s: float
    within_s: float
    helped_ratio: float
    weak_ratio: float
    unproven: str


@dataclass(frozen=True)
class Rule:
    """What one condition may trigger; `mode` overrides the global one."""

    causes: tuple[str, ...]
    do: tuple[str, ...]
    weight_ratio: float
    ttl_s: float
    mode: str


@dataclass(frozen=True)
class Endpoint:
    """One replica of a pool: its id as skewscope names it, its hosts, its node, its names elsewhere."""

    id: str
    hosts: tuple[str, ...]
    node: str
    name: str
    names: Mapping[str, str]

    def name_for(self, actuator: str) -> str:
        """Return the name by which an actuator knows this endpoint."""
        return self.names.get(actuator, self.name)


@dataclass(frozen=True)
class Pool:
    """Endpoints that stand in for each other, and the actuators to reach them, first match first.

    objective_s: what the time that the report speaks of (TTFT or chunk gap) should keep; 0 = none is set.
    """

    name: str
    actuators: tuple[str, ...]
    endpoints: tuple[Endpoint, ...]
    objective_s: float = 0.0


@dataclass(frozen=True)
class Settings:
    """The whole of act.toml on top of the shipped defaults."""

    mode: str
    learn_s: float
    journal: str
    limits: Limits
    evidence: EvidenceNeeded
    verify: Verify
    rules: Mapping[str, Rule]
    pools: tuple[Pool, ...]
    actuators: Mapping[str, Mapping[str, Any]]


class Table:
    """One TOML table that is read key by key; `done` refuses keys that nobody read."""

    def __init__(self, path: str, data: Any) -> None:
        if not isinstance(data, Mapping):
            raise SettingsError(f"{path or 'act.toml'}: must be a table")
        self.path, self._data, self._read = path, data, set[str]()

    def _at(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key

    def any(self, key: str, default: Any = None) -> Any:
        """Return the raw value; None as default means that the key is required."""
        self._read.add(key)
        value = self._data.get(key, default)
        if value is None:
            raise SettingsError(f"{self._at(key)}: missing")
        return value

    def text(self, key: str, default: str | None = None, one_of: Sequence[str] = ()) -> str:
        """Return a string, one of `one_of` where that is given."""
        value = self.any(key, default)
        if not isinstance(value, str):
            raise SettingsError(f"{self._at(key)}: must be text, not {value!r}")
        if one_of and value not in one_of:
            raise SettingsError(f"{self._at(key)}: {value!r} is not one of {', '.join(one_of)}")
        return value

    def number(
        self, key: str, least: float = 0.0, most: float = math.inf, default: float | None = None
    ) -> float:
        """Return a finite number within [least, most]."""
        value = self.any(key, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise SettingsError(f"{self._at(key)}: must be a number, not {value!r}")
        if not least <= value <= most:
            raise SettingsError(f"{self._at(key)}: {value!r} is not within {least:g} and {most:g}")
        return float(value)

    def flag(self, key: str, default: bool | None = None) -> bool:
        """Return true or false."""
        value = self.any(key, default)
        if not isinstance(value, bool):
            raise SettingsError(f"{self._at(key)}: must be true or false, not {value!r}")
        return value

    def texts(self, key: str, default: Sequence[str] | None = None, one_of: Sequence[str] = ()) -> list[str]:
        """Return a list of strings."""
        value = self.any(key, default)
        if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) for v in value):
            raise SettingsError(f"{self._at(key)}: must be a list of texts")
        for v in value:
            if one_of and v not in one_of:
                raise SettingsError(f"{self._at(key)}: {v!r} is not one of {', '.join(one_of)}")
        return list(value)

    def table(self, key: str, default: Mapping[str, Any] | None = None) -> Table:
        """Return a table below this one."""
        return Table(self._at(key), self.any(key, default))

    def tables(self, key: str) -> list[Table]:
        """Return an array of tables; none where the key is absent."""
        value = self.any(key, [])
        if not isinstance(value, list):
            raise SettingsError(f"{self._at(key)}: must be [[{key}]]")
        return [Table(f"{self._at(key)}[{i}]", v) for i, v in enumerate(value)]

    def keys(self) -> list[str]:
        """Return the keys in order."""
        return [str(k) for k in self._data]

    def done(self) -> None:
        """Raise SettingsError for the first key that nothing reads."""
        for key in self._data:
            if key not in self._read:
                raise SettingsError(f"{self._at(str(key))}: unknown key")


def parse(text: str) -> Settings:
    """Parse the text of an act.toml; raises SettingsError with one line."""
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"not valid TOML: {error}") from None
    shipped = resources.files("skewscope.act").joinpath("defaults.toml").read_text("utf-8")
    return _settings(Table("", _over(tomllib.loads(shipped), given)))


def _over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Lay one tree of tables over another, key by key."""
    out = dict(below)
    for key, value in above.items():
        both = isinstance(value, Mapping) and isinstance(out.get(key), Mapping)
        out[key] = _over(out[key], value) if both else value
    return out


def _settings(top: Table) -> Settings:
    actuators = _actuators(top.tables("actuator"))
    settings = Settings(
        mode=top.text("mode", one_of=MODES),
        learn_s=top.number("learn_s"),
        journal=top.text("journal", "act.jsonl"),
        limits=_limits(top.table("limits")),
        evidence=_evidence(top.table("evidence")),
        verify=_verify(top.table("verify")),
        rules=_rules(top.table("rule")),
        pools=tuple(_pool(p, actuators) for p in top.tables("pool")),
        actuators=actuators,
    )
    top.done()
    ids = [e.id for p in settings.pools for e in p.endpoints]
    for kind, names in (("pool", [p.name for p in settings.pools]), ("endpoint", ids)):
        twice = sorted({n for n in names if names.count(n) > 1})
        if twice:
            raise SettingsError(f"pool: {kind} {twice[0]!r} is given twice")
    return settings


def _limits(t: Table) -> Limits:
    out = Limits(
        pool_share_ratio=t.number("pool_share_ratio", 0, 0.2),
        actions_per_hour=int(t.number("actions_per_hour", 0, 1000)),
        cool_down_s=t.number("cool_down_s"),
        max_extra_load_ratio=t.number("max_extra_load_ratio"),
        max_report_age_s=t.number("max_report_age_s"),
        irreversible=t.flag("irreversible"),
    )
    t.done()
    return out


def _evidence(t: Table) -> EvidenceNeeded:
    names = ("min_score", "min_culprit_probability", "min_cause_probability", "min_benefit_ratio")
    out = EvidenceNeeded(*(t.number(name, 0, 1) for name in names))
    t.done()
    return out


def _verify(t: Table) -> Verify:
    out = Verify(
        settle_s=t.number("settle_s"),
        within_s=t.number("within_s"),
        helped_ratio=t.number("helped_ratio", 0, 1),
        weak_ratio=t.number("weak_ratio", 0, 1),
        unproven=t.text("unproven", one_of=("revert", "keep")),
    )
    t.done()
    if out.within_s < out.settle_s:
        raise SettingsError(f"{t.path}.within_s: must not be shorter than settle_s")
    return out


def _rules(t: Table) -> dict[str, Rule]:
    shared = t.table("default")
    out = {}
    for name in t.keys():  # noqa: SIM118  a method of ours, not of a dictionary
        r = Table(f"{t.path}.{name}", _over(shared._data, t.table(name)._data))
        out[name] = Rule(
            causes=tuple(r.texts("causes", one_of=CAUSES)),
            do=tuple(r.texts("do", one_of=tuple(VERBS))),
            weight_ratio=r.number("weight_ratio", 0.01, 1),
            ttl_s=r.number("ttl_s", 1, 86400),
            mode=r.text("mode", "", one_of=("", *MODES)),
        )
        r.done()
        if [VERBS[v] for v in out[name].do] != sorted({VERBS[v] for v in out[name].do}):
            raise SettingsError(f"{r.path}.do: verbs must climb the ladder, the weakest first")
    del out["default"]
    return out


def _actuators(tables: Sequence[Table]) -> dict[str, Mapping[str, Any]]:
    out: dict[str, Mapping[str, Any]] = {}
    for t in tables:
        name = t.text("name")
        t.text("kind")
        if name in out:
            raise SettingsError(f"{t.path}.name: {name!r} is given twice")
        out[name] = t._data
    return out


def _pool(t: Table, actuators: Mapping[str, Any]) -> Pool:
    pool = Pool(
        name=t.text("name"),
        actuators=tuple(t.texts("actuators", one_of=tuple(actuators) or ("(no [[actuator]])",))),
        endpoints=tuple(_endpoint(e) for e in t.tables("endpoints")),
        objective_s=t.number("objective_s", 0, 3600, 0.0),
    )
    t.done()
    if not pool.endpoints:
        raise SettingsError(f"{t.path}.endpoints: a pool needs at least one")
    return pool


def _endpoint(t: Table) -> Endpoint:
    identity = t.text("id")
    names = t.table("names", {})
    out = Endpoint(
        id=identity,
        hosts=tuple(t.texts("hosts", [])),
        node=t.text("node", ""),
        name=t.text("name", identity),
        names={k: names.text(k) for k in names.keys()},  # noqa: SIM118  as above
    )
    t.done()
    return out
