"""The runbook entry of a condition: thresholds, causes, edges and texts, as validated data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from skewscope.core.condition import Params, Threshold

CAUSES = (
    "client",
    "gateway",
    "router",
    "scheduler",
    "workload",
    "host_cpu",
    "runtime",
    "gpu",
    "pcie",
    "nic",
    "link",
    "fabric",
    "peer",
    "config",
    "hardware",
    "security",
    "unknown",
)
CULPRITS = (
    "rank",
    "host",
    "link",
    "flow",
    "endpoint",
    "client",
    "gateway",
    "router",
    "gpu",
    "port",
    "metric",
)
STATUSES = ("experimental", "beta", "stable")
SEVERITIES = ("info", "minor", "major", "critical")
PLANES = ("north_south", "east_west", "pcie", "host")
_COMPARISON = re.compile(r"^\s*([a-z_0-9]+)\s*(<=|>=|<|>)\s*(-?[0-9.]+(?:e-?[0-9]+)?)\s*$")


class EntryError(ValueError):
    """An entry.toml that is not valid; the message names the folder and the field."""


@dataclass(frozen=True)
class Comparison:
    """`evidence < number`: parsed, never evaluated as code."""

    name: str
    op: str
    value: float

    @staticmethod
    def parse(text: str) -> Comparison:
        """Parse one comparison; raises EntryError."""
        match = _COMPARISON.match(text)
        if match is None:
            raise EntryError(f"not a comparison of one evidence column with a number: {text!r}")
        return Comparison(match[1], match[2], float(match[3]))

    def holds(self, evidence: Mapping[str, float]) -> bool:
        """Return whether it holds; an absent or NaN value never does."""
        left = evidence.get(self.name, float("nan"))
        return {
            "<": left < self.value,
            ">": left > self.value,
            "<=": left <= self.value,
            ">=": left >= self.value,
        }[self.op]


@dataclass(frozen=True)
class CauseRule:
    """A candidate cause: prior weight, and the evidence under which it is a candidate at all."""

    cause: str
    weight: float
    when: Comparison | None


@dataclass(frozen=True)
class Hides:
    """This condition explains another one away where the named relation holds.

    `where`: "same" (equal scope key), "host" (a host in common), "group" (hosts of one collective
    group or its gateway), "any".
    """

    condition: str
    where: str


@dataclass(frozen=True)
class ActionRule:
    """A first safe action."""

    id: str
    text: str
    risk: str
    reversible: bool
    verify: str


@dataclass(frozen=True)
class Timing:
    """When a verdict becomes a finding and when it ends; windows are counted with data only.

    fire: findings among the last `of` judged windows that make it fire. keep_s: event time without
    a further finding after which it has ended.
    """

    fire: int = 1
    of: int = 1
    keep_s: float = 1.0


@dataclass(frozen=True)
class Entry:
    """One condition of the runbook."""

    number: int
    slug: str
    title: str
    status: str
    severity: str
    plane: str
    scope: str
    needs: Mapping[str, str]
    params: Params
    evidence: Mapping[str, str]
    timing: Timing
    causes: tuple[CauseRule, ...]
    culprit_kind: str
    culprit_key: str
    hides: tuple[Hides, ...]
    actions: tuple[ActionRule, ...]
    false_positives: tuple[str, ...]
    references: tuple[str, ...]
    texts: Mapping[str, str]
    separates: Mapping[str, str] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The short id, such as "c20"."""
        return f"c{self.number:02d}"


def parse_entry(folder: str, data: Mapping[str, Any]) -> Entry:
    """Validate one parsed entry.toml; raises EntryError with folder and field."""
    try:
        entry = _build(data)
    except EntryError as error:
        raise EntryError(f"{folder}/entry.toml: {error}") from None
    except (KeyError, TypeError, AttributeError) as error:
        raise EntryError(f"{folder}/entry.toml: missing or misshapen {error}") from None
    if folder != f"{entry.id}_{entry.slug}":
        raise EntryError(f"{folder}/entry.toml: number and slug do not equal the folder's name")
    return entry


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise EntryError(f"{name} = {value!r} is not one of {', '.join(allowed)}")
    return str(value)


def _threshold(name: str, data: Mapping[str, Any]) -> Threshold:
    if not data.get("why") or not data.get("unit"):
        raise EntryError(f"threshold {name} needs a unit and a reason (why)")
    return Threshold(float(data["value"]), str(data["unit"]), str(data["why"]))


def _build(data: Mapping[str, Any]) -> Entry:
    texts = {k: str(data[k]).strip() for k in ("meaning", "impact", "diagnosis", "mitigation")}
    empty = [k for k, v in texts.items() if not v]
    if empty:
        raise EntryError(f"empty text: {', '.join(empty)}")
    culprit = data["culprit"]
    return Entry(
        number=int(data["number"]),
        slug=str(data["slug"]),
        title=str(data["title"]),
        status=_one_of("status", data["status"], STATUSES),
        severity=_one_of("severity", data["severity"], SEVERITIES),
        plane=_one_of("plane", data["plane"], PLANES),
        scope=str(data["scope"]),
        needs={k: str(v) for k, v in data["needs"].items()},
        params=Params({k: _threshold(k, v) for k, v in data.get("thresholds", {}).items()}),
        evidence={k: str(v) for k, v in data.get("evidence", {}).items()},
        timing=Timing(**data.get("timing", {})),
        causes=tuple(_cause(c) for c in data["causes"]),
        culprit_kind=_one_of("culprit.kind", culprit["kind"], CULPRITS),
        culprit_key=str(culprit.get("key", "self")),
        hides=tuple(Hides(str(h["condition"]), str(h.get("where", "group"))) for h in data.get("hides", [])),
        actions=tuple(_action(a) for a in data["actions"]),
        false_positives=tuple(map(str, data.get("false_positives", []))),
        references=tuple(map(str, data.get("references", []))),
        texts=texts,
        separates={k: str(v) for k, v in data.get("separates", {}).items()},
    )


def _cause(data: Mapping[str, Any]) -> CauseRule:
    when = data.get("if_evidence")
    return CauseRule(
        _one_of("causes.class", data["class"], CAUSES),
        float(data["weight"]),
        Comparison.parse(when) if when else None,
    )


def _action(data: Mapping[str, Any]) -> ActionRule:
    return ActionRule(
        str(data["id"]),
        str(data["text"]),
        str(data["risk"]),
        bool(data["reversible"]),
        str(data.get("verify", "")),
    )
