"""Scenarios: one TOML file per runbook condition, with a healthy, a faulty and a near-miss variant.

A value may be drawn from the seed: `{ choice = [...] }`, or between two ends `{ uniform = [low, high] }`,
`{ log = [low, high] }`, `{ whole = [low, high] }`. Draws of the table `[draw]` have names. `$name` in any
text stands for one, as do the roles of the drawn topology: `$rank` (one of the ranks), `$other` (another),
`$leader` (rank 0), `$far` (rank 0 of the last replica), `$client`, `$router`, `$gateway`, `$bystander`,
`$management`, `$prefill` (its first node), and the lists `$ranks`, `$each_prefill` (nodes) and `$each_rank`
(process names). With `one_of` one injection of the list is drawn, else all are made.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

from skewscope.lab.bed import topology, workload
from skewscope.lab.bed.topology import Topology
from skewscope.lab.bed.workload import Workload

VARIANTS = ("healthy", "faulty", "near_miss")
DRAWS = ("choice", "uniform", "log", "whole")
TIMES = {"lead_s": {"uniform": [4.0, 7.0]}, "fault_s": {"uniform": [4.0, 8.0]}, "after_s": 2.0}
TRUTH = ("condition", "also_right", "secondary", "cause_right", "culprit", "at", "visible", "visible_count")
KEYS = {"title", "draw", "topology", "workload", "needs", "inject", "one_of", *TIMES, *TRUTH, *VARIANTS}


class ScenarioError(ValueError):
    """A scenario file is wrong, or there is no such scenario; the message names the key."""


@dataclass(frozen=True)
class Injection:
    """One injector with its settings. `ramp_from` makes it grow to `strength` over `ramp_s`."""

    injector: str
    strength: float
    settings: Mapping[str, Any]
    ramp_from: float | None = None
    ramp_s: float = 0.0


@dataclass(frozen=True)
class Expected:
    """What is true of a case. Without a condition the case must raise nothing but `secondary`."""

    condition: str = ""
    also_right: tuple[str, ...] = ()
    secondary: tuple[str, ...] = ()
    cause_right: tuple[str, ...] = ()
    culprit_kind: str = ""
    culprit_node: str = ""


@dataclass(frozen=True)
class Drawn:
    """A scenario with everything drawn: what the bed runs."""

    name: str
    variant: str
    seed: int
    topology: Topology
    workload: Workload
    injections: tuple[Injection, ...]
    expected: Expected
    lead_s: float
    fault_s: float
    after_s: float
    needs: tuple[str, ...] = ()
    visible: Mapping[str, float] = field(default_factory=dict)
    """Figure -> least ratio to the paired run; one of them must be reached, or the fault is no case."""
    visible_count: Mapping[str, float] = field(default_factory=dict)
    """Figure -> least excess over the paired run."""


def names() -> list[str]:
    """Return the names of all scenario files."""
    folder = resources.files("skewscope.lab.bed") / "scenarios"
    return sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))


def load(name: str) -> dict[str, Any]:
    """Return the table of a scenario file; `c20` finds `c20_tp_straggler`. Raises ScenarioError."""
    fitting = [n for n in names() if n == name or n.partition("_")[0] == name]
    fitting.sort(key=lambda n: (n != name, len(n)))  # a number means the condition's plain scenario
    if not fitting:
        raise ScenarioError(f"no scenario {name!r}; `skewscope lab bed list` shows them")
    text = (resources.files("skewscope.lab.bed") / "scenarios" / f"{fitting[0]}.toml").read_text("utf-8")
    table = tomllib.loads(text)
    unknown = set(table) - KEYS
    if unknown or not {"title", "condition", "faulty"} <= set(table):
        raise ScenarioError(
            f"{fitting[0]}: unknown or missing keys: {', '.join(sorted(unknown)) or 'see KEYS'}"
        )
    return {"name": fitting[0], **table}


def split(name: str) -> tuple[str, str]:
    """Split `c20.near_miss` into file and variant; faulty is the default."""
    base, _, variant = name.partition(".")
    if (variant or "faulty") not in VARIANTS:
        raise ScenarioError(f"variant: {variant!r} is none of {', '.join(VARIANTS)}")
    return base, variant or "faulty"


def draw(name: str, seed: int, noise: str | None = None, shape: str | None = None) -> Drawn:
    """Draw a scenario (`c20`, `c20_tp_straggler.near_miss`, ...) from a seed. Raises ScenarioError.

    `noise` is a level, `shape` the text of a topology file; each takes the place of the scenario's own.
    """
    base, variant = split(name)
    return draw_table(load(base), variant, seed, noise, shape)


def draw_table(
    table: Mapping[str, Any], variant: str, seed: int, noise: str | None = None, shape: str | None = None
) -> Drawn:
    """Draw one variant of a scenario table. Raises ScenarioError naming the file."""
    if variant != "healthy" and variant not in table:
        raise ScenarioError(f"{table['name']}: there is no variant {variant}")
    merged = _merged(
        {**TIMES, **{k: v for k, v in table.items() if k not in VARIANTS}}, table.get(variant, {})
    )
    rng = Random(f"{table['name']} {seed}")
    try:
        if noise:
            merged["workload"] = {**merged.get("workload", {}), "noise": noise}
        return _drawn(merged, variant, seed, shape, rng)
    except (topology.TopologyError, workload.WorkloadError, KeyError, TypeError, ValueError) as error:
        raise ScenarioError(f"{table['name']}.{variant}: {error}") from error


def _drawn(table: dict[str, Any], variant: str, seed: int, text: str | None, rng: Random) -> Drawn:
    named = {k: _value(v, {}, rng) for k, v in table.get("draw", {}).items()}
    shape = _value(table.get("topology", "tp4"), named, rng)
    # Each scenario has addresses of its own, the variants of one seed have the same.
    bed = topology.parse(text or topology.builtin(shape), crc32(table["name"].encode()) + seed)
    named |= _roles(bed, rng)
    settings = _value(table.get("workload", {}), named, rng)
    listed = table.get("inject", []) if variant != "healthy" else []
    if table.get("one_of") and listed:
        listed = [rng.choice(listed)]
    injections = tuple(_injection(i, named, rng) for i in listed)
    times = {k: float(_value(table[k], named, rng)) for k in TIMES}
    said = {k: _value(table[k], named, rng) for k in TRUTH if k in table}
    return Drawn(
        name=table["name"],
        variant=variant,
        seed=seed,
        topology=bed,
        workload=workload.parse(settings),
        injections=injections,
        expected=_expected(said, variant),
        needs=tuple(table.get("needs", ())),
        visible=said.get("visible", {}),
        visible_count=said.get("visible_count", {}),
        **times,
    )


def _expected(said: Mapping[str, Any], variant: str) -> Expected:
    secondary = tuple(said.get("secondary", ()))
    if variant == "healthy":
        return Expected()
    if variant == "near_miss" and not said.get("culprit"):
        return Expected(secondary=secondary)
    return Expected(
        condition=said["condition"],
        also_right=tuple(said.get("also_right", ())),
        secondary=secondary,
        cause_right=tuple(said["cause_right"]),
        culprit_kind=said["culprit"],
        culprit_node=said["at"],
    )


def _merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge tables; a drawn value or a list of the variant replaces that of the base as a whole."""
    out = dict(base)
    for key, value in over.items():
        mine = out.get(key)
        tables = isinstance(mine, dict) and isinstance(value, dict)
        out[key] = _merged(mine or {}, value) if tables and not (_is_draw(value) or _is_draw(mine)) else value
    return out


def _is_draw(value: Any) -> bool:
    return isinstance(value, dict) and len(value) == 1 and next(iter(value)) in DRAWS


def _value(value: Any, named: Mapping[str, Any], rng: Random) -> Any:
    """Return a value with its draws drawn and its names replaced."""
    if _is_draw(value):
        ((kind, of),) = value.items()
        return _value(_draw(kind, of, rng), named, rng)
    if isinstance(value, dict):
        return {k: _value(v, named, rng) for k, v in value.items()}
    if isinstance(value, list):
        return [_value(v, named, rng) for v in value]
    if isinstance(value, str) and "$" in value:
        return _replaced(value, named)
    return value


def _draw(kind: str, of: Any, rng: Random) -> Any:
    if kind == "choice":
        return rng.choice(of)
    low, high = of
    if low > high:
        raise ValueError(f"{kind} = {of}: low <= high is needed")
    if kind == "whole":
        return rng.randint(low, high)
    if kind == "log":
        return math.exp(rng.uniform(math.log(low), math.log(high)))
    return rng.uniform(low, high)


def _replaced(text: str, named: Mapping[str, Any]) -> Any:
    """Replace `$name`; a text that is one name becomes its value, of whatever type."""
    if text[1:] in named and text[0] == "$":
        return named[text[1:]]
    for name in sorted(named, key=len, reverse=True):
        text = text.replace(f"${name}", str(named[name]))
    if "$" in text:
        raise ValueError(f"{text!r}: unknown name")
    return text


def _roles(bed: Topology, rng: Random) -> dict[str, Any]:
    ranks = list(bed.of_role("rank"))
    chosen, other = rng.sample(ranks, 2)
    out: dict[str, Any] = {
        "rank": chosen.name,
        "other": other.name,
        "leader": bed.replicas()[0][0].name,
        "far": bed.replicas()[-1][0].name,
        "ranks": [n.name for n in ranks],
        "each_rank": [f"rank-{n.name}" for n in ranks],
    }
    prefill = bed.of_role("prefill")
    if prefill:
        out["prefill"], out["each_prefill"] = prefill[0].name, [n.name for n in prefill]
    for role in ("client", "router", "gateway", "bystander", "management", "storage"):
        nodes = bed.of_role(role)
        if nodes:
            out[role] = nodes[0].name
            out[f"{role}s"] = [n.name for n in nodes]
    return out


def _injection(table: Mapping[str, Any], named: Mapping[str, Any], rng: Random) -> Injection:
    settings = _value(dict(table), named, rng)
    return Injection(
        injector=settings.pop("injector"),
        strength=float(settings.pop("strength", 1.0)),
        ramp_from=settings.pop("ramp_from", None),
        ramp_s=float(settings.pop("ramp_s", 0.0)),
        settings=settings,
    )


def with_trace(drawn: Drawn, file: Path, rate: float) -> Drawn:
    """Return the same case with a published trace as its load, `rate` requests/s on average."""
    load = {"trace": str(file.resolve()), "rate": rate, "keep_alive": False}
    clients = {n: s for n, s in drawn.workload.clients.items() if not n.startswith("main")}
    return replace(drawn, workload=replace(drawn.workload, clients={"main": load, **clients}))


def scaled(drawn: Drawn, factor: float, calm: float = 1.0) -> Drawn:
    """Return the same case with its times shortened to `factor`, for quick suites and small archives.

    Lead and fault are never under 2 s, the rest never under 1 s. The engine computes `calm` times as long in
    each step, so that as many times fewer packets pass.
    """
    return replace(
        drawn,
        lead_s=max(2.0, drawn.lead_s * factor),
        fault_s=max(2.0, drawn.fault_s * factor),
        after_s=max(1.0, drawn.after_s * factor),
        workload=replace(drawn.workload, compute_ms=drawn.workload.compute_ms * calm),
    )


def stretched(drawn: Drawn, length_s: float) -> Drawn:
    """Return the same case made `length_s` long; what is injected lasts for the middle 40 %."""
    return replace(drawn, lead_s=0.3 * length_s, fault_s=0.4 * length_s, after_s=0.3 * length_s)
