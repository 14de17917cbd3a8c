"""The truth of a case: `truth.toml`, schema skewscope.truth/1. Written and read here."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SCHEMA = "skewscope.truth/1"


class TruthError(ValueError):
    """A truth file is not of the schema; the message names the key."""


@dataclass(frozen=True)
class Fault:
    """One fault of a case; times in s from the first sample."""

    condition: str
    culprit_kind: str
    culprit_id: str
    cause_right: tuple[str, ...]
    onset_s: float
    end_s: float
    also_right: tuple[str, ...] = ()
    secondary: tuple[str, ...] = ()
    strength: tuple[str, float] = ("", math.nan)
    effect: Mapping[str, float] = field(default_factory=dict)
    visible_from: tuple[str, ...] = ()


@dataclass(frozen=True)
class Truth:
    """What is true of a case. `allowed` may fire in a case without a fault; `bed` says how it was made."""

    name: str
    source: str
    seed: int
    workload: str
    first_sample_ns: int
    machine_busy_ratio: float
    faults: tuple[Fault, ...] = ()
    allowed: tuple[str, ...] = ()
    round_s: float = math.nan
    bed: Mapping[str, Any] = field(default_factory=dict)


def write(truth: Truth) -> str:
    """Return the text of truth.toml."""
    lines = [
        f"schema = {_text(SCHEMA)}",
        f"name = {_text(truth.name)}",
        f"source = {_text(truth.source)}",
        f"seed = {truth.seed}",
        f"workload = {_text(truth.workload)}",
        f"first_sample_ns = {truth.first_sample_ns}",
        f"machine_busy_ratio = {_number(truth.machine_busy_ratio)}",
        f"round_s = {_number(truth.round_s)}",
        f"allowed = {_text(truth.allowed)}",
    ]
    for fault in truth.faults:
        name, value = fault.strength
        lines += [
            "",
            "[[fault]]",
            f"condition = {_text(fault.condition)}",
            f"also_right = {_text(fault.also_right)}",
            f"secondary = {_text(fault.secondary)}",
            f"culprit = {{ kind = {_text(fault.culprit_kind)}, id = {_text(fault.culprit_id)} }}",
            f"cause_right = {_text(fault.cause_right)}",
            f"onset_s = {_number(fault.onset_s)}",
            f"end_s = {_number(fault.end_s)}",
            f"strength = {{ name = {_text(name)}, value = {_number(value)} }}",
            f"effect = {_inline(fault.effect)}",
            f"visible_from = {_text(fault.visible_from)}",
        ]
    lines += ["", "[bed]", *(f"{_key(k)} = {_any(v)}" for k, v in truth.bed.items())]
    return "\n".join(lines) + "\n"


def read(text: str) -> Truth:
    """Parse truth.toml; raises TruthError."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TruthError(f"not TOML: {error}") from None
    if data.get("schema") != SCHEMA:
        raise TruthError(f"schema: {data.get('schema')!r} is not {SCHEMA}")
    try:
        return Truth(
            name=data["name"],
            source=data["source"],
            seed=data.get("seed", 0),
            workload=data.get("workload", ""),
            first_sample_ns=data["first_sample_ns"],
            machine_busy_ratio=data.get("machine_busy_ratio", math.nan),
            faults=tuple(map(_fault, data.get("fault", []))),
            allowed=tuple(data.get("allowed", ())),
            round_s=data.get("round_s", math.nan),
            bed=data.get("bed", {}),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise TruthError(f"missing or wrong: {error}") from None


def _fault(table: Mapping[str, Any]) -> Fault:
    strength = table.get("strength", {"name": "", "value": math.nan})
    return Fault(
        condition=table["condition"],
        culprit_kind=table["culprit"]["kind"],
        culprit_id=table["culprit"]["id"],
        cause_right=tuple(table["cause_right"]),
        onset_s=float(table["onset_s"]),
        end_s=float(table["end_s"]),
        also_right=tuple(table.get("also_right", ())),
        secondary=tuple(table.get("secondary", ())),
        strength=(strength["name"], float(strength["value"])),
        effect=table.get("effect", {}),
        visible_from=tuple(table.get("visible_from", ())),
    )


def _text(value: str | tuple[str, ...]) -> str:
    # A JSON string is a TOML basic string, but for DEL, which TOML wants escaped.
    written = json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
    return written.replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    bare = name.isascii() and name.replace("_", "").isalnum()
    return name if bare else _text(name)


def _number(value: float) -> str:
    return "nan" if math.isnan(value) else repr(round(float(value), 6))


def _inline(table: Mapping[str, float]) -> str:
    return "{ " + ", ".join(f"{k} = {_number(v)}" for k, v in table.items()) + " }" if table else "{}"


def _any(value: Any) -> str:
    if isinstance(value, (bool, int)):
        return json.dumps(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(k)} = {_any(v)}" for k, v in value.items()) + " }" if value else "{}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_any, value)) + "]"
    return _text(str(value))
