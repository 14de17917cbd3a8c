"""Scenarios: TOML files that say which knobs a fault turns, where, how far, and what must be seen of it."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from skewscope.lab.sim import workload
from skewscope.lab.sim.cluster import GPUS, Cluster, parse, shipped
from skewscope.lab.sim.events import Streams
from skewscope.lab.sim.knobs import GPU, HOST, KNOBS, LINK, REPLICA, size_of
from skewscope.lab.sim.workload import ADDED, Demand
from skewscope.lab.sim.world import Change

DURATION_S = 90.0
RAMP_STEPS = 12


class ScenarioError(ValueError):
    """A scenario is not known or not valid; the message names the key."""


@dataclass(frozen=True)
class Signal:
    """A series that a fault moves: where, and which way."""

    name: str
    at: str
    moves: str
    """"rises", "falls", "moves", "spreads" (the longest gap between events) or "freezes"."""
    labels: str = ""
    above: float = 0.0
    """Of a histogram, the share of observations above this bucket's bound instead of the mean."""


@dataclass(frozen=True)
class Drawn:
    """A scenario with everything open drawn from a seed."""

    name: str
    variant: str
    title: str
    condition: str
    """Empty for a negative control."""
    seed: int
    cluster: Cluster
    demand: Demand
    added: Demand | None
    changes: tuple[Change, ...]
    onset_s: float
    end_s: float
    duration_s: float
    culprit_kind: str
    culprit_id: str
    cause_right: tuple[str, ...]
    also_right: tuple[str, ...]
    secondary: tuple[str, ...]
    strength: tuple[str, float]
    ramp_s: float
    signals: tuple[Signal, ...]
    visible_from: tuple[str, ...]
    biased: int
    announced: tuple[tuple[float, int], ...] = ()
    kept: tuple[float, float, float] = (1.0, 0.0, 0.0)
    """Share of arrivals kept from a time to a time."""
    defect: str = ""
    """What is wrong with the recording itself: "begins_late", "ends_early" or "lossy"."""
    places: Mapping[str, list[int]] = field(default_factory=dict)


def names() -> list[str]:
    """Return the shipped scenarios."""
    folder = files("skewscope.lab.sim").joinpath("scenarios")
    return sorted(f.name.removesuffix(".toml") for f in folder.iterdir() if f.name.endswith(".toml"))


@cache
def load(name: str) -> dict[str, Any]:
    """Return a scenario's table by name, or by number as in "c20"; raises ScenarioError."""
    found = [n for n in names() if n == name or n.split("_")[0] == name]
    if len(found) != 1:
        raise ScenarioError(f"no scenario {name!r}; `skewscope lab sim list` shows all")
    text = files("skewscope.lab.sim").joinpath("scenarios", f"{found[0]}.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    for key in ("title", "cluster", "variant"):
        if key not in data:
            raise ScenarioError(f"{found[0]}: no {key}")
    return {"name": found[0], "condition": "", **data}


def variants(name: str) -> list[str]:
    """Return the names of a scenario's variants."""
    return [v["name"] for v in load(name)["variant"]]


def draw(
    asked: str,
    seed: int,
    *,
    duration_s: float = DURATION_S,
    strength: float = math.nan,
    ramp_s: float = math.nan,
    cluster: str = "",
) -> Drawn:
    """Draw a scenario ("c20" or "c20.gpu") from a seed; variants take turns by seed.

    `strength` and `ramp_s` replace what is drawn; `cluster` is the text of a cluster file instead of the
    scenario's. Raises ScenarioError.
    """
    data, variant = _chosen(asked, seed)
    table = {**data, **variant}
    streams = Streams.of(seed)
    rng = streams.faults
    made = parse(table["cluster"], cluster or shipped(table["cluster"]), streams.placement)
    places = _places(made, streams.placement)
    # A day's slice begins anywhere; the fault begins after a third of it and stays to near the end.
    onset = duration_s * float(rng.uniform(0.33, 0.42))
    end = duration_s * float(rng.uniform(0.88, 0.97))
    ramp = float(rng.choice([0.0, 0.0, 0.1])) * (end - onset)
    if not math.isnan(ramp_s):
        ramp = min(ramp_s, end - onset)
    rate = made.rate_rps * float(table.get("rate_ratio", 1.0))
    profile = table.get("profile", made.profile)
    base = workload.synthetic(profile, rate, 0.0, duration_s, len(made.clients), streams.placement)
    changes, said = _changes(table, made, places, onset, end, ramp, rng, strength)
    culprit = table.get("culprit", {"kind": "", "at": ""})
    return Drawn(
        name=data["name"],
        variant=variant["name"],
        title=data["title"],
        condition=data["condition"],
        seed=seed,
        cluster=made,
        demand=base,
        added=_added(table, made, onset, end, rng, strength),
        changes=tuple(changes),
        onset_s=onset,
        end_s=end,
        duration_s=duration_s,
        culprit_kind=culprit["kind"],
        culprit_id=_id(made, culprit["kind"], culprit["at"], places) if culprit["at"] else "",
        cause_right=tuple(table.get("cause_right", ())),
        also_right=tuple(table.get("also_right", ())),
        secondary=tuple(table.get("secondary", ())),
        strength=said,
        ramp_s=ramp,
        signals=tuple(Signal(**s) for s in table.get("signals", ())),
        visible_from=tuple(table.get("visible_from", ("counters", "metrics"))),
        biased=places["$replica"][0],
        announced=tuple((onset, r) for r in places[table["announce"]]) if "announce" in table else (),
        kept=(float(table["keep_share"]), onset, end) if "keep_share" in table else (1.0, 0.0, 0.0),
        defect=table.get("defect", ""),
        places=places,
    )


def _chosen(asked: str, seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a scenario's table and that of the variant asked for, or of the one whose turn it is."""
    name, _, variant = asked.partition(".")
    data = load(name)
    listed = data["variant"]
    found = [v for v in listed if v["name"] == variant] if variant else [listed[seed % len(listed)]]
    if not found:
        raise ScenarioError(f"{data['name']}: no variant {variant!r}; there are {', '.join(variants(name))}")
    return data, found[0]


def _places(cluster: Cluster, rng: np.random.Generator) -> dict[str, list[int]]:
    """Return what the selectors of a scenario stand for."""
    pool = cluster.pool("decode") or cluster.pool("mixed") or cluster.pool("training")
    replica = int(rng.choice(pool))
    hosts = list(cluster.replicas[replica].hosts)
    host = int(rng.choice(hosts))
    gpu = host * GPUS + int(rng.integers(GPUS))
    others = [r for r in pool if r != replica]
    source = (cluster.pool("prefill") or [replica])[0]
    return {
        "$gpu": [gpu],
        "$gpus": [host * GPUS + n for n in range(GPUS)],
        "$some_gpus": sorted(int(g) for g in rng.permutation(GPUS)[:3] + host * GPUS),
        "$replica_gpus": cluster.gpus_of(replica),
        "$peer_gpu": [next((h for h in hosts if h != host), host) * GPUS + gpu % GPUS],
        "$host": [host],
        "$hosts": hosts,
        "$front": [hosts[0]],
        "$replica": [replica],
        "$others": others,
        "$prefill": [source],
        "$prefills": cluster.pool("prefill"),
        "$link": [cluster.uplink_of(gpu)],
        "$pair": [replica],
        "$world": [0],
        "$client": [0],
        "$gateway": [0],
    }


def _all(knob: str, cluster: Cluster) -> list[int]:
    return list(range(size_of(KNOBS[knob][0], cluster)))


def _id(cluster: Cluster, kind: str, at: str, places: Mapping[str, list[int]]) -> str:
    """Return the canonical id of a culprit."""
    number = places[at][0]
    if at in ("$gpu", "$peer_gpu"):
        return cluster.nic(number) if kind in ("nic", "port", "link") else cluster.gpu(number)
    if at in ("$host", "$front"):
        return cluster.front_port(number) if kind == "port" else cluster.addresses[number]
    if at in ("$replica", "$prefill"):
        return f"metric:engine/{cluster.endpoint(number)}" if kind == "metric" else cluster.endpoint(number)
    if at == "$link":
        return cluster.uplink(number)
    if at == "$pair":
        source = cluster.replicas[places["$prefill"][0]].hosts[0]
        return f"{cluster.addresses[source]}->{cluster.addresses[cluster.replicas[number].hosts[0]]}"
    return cluster.gateway if at == "$gateway" else cluster.clients[0]


def _value(said: Any, rng: np.random.Generator, strength: float, end_s: float) -> float:
    """Return a value: a number, drawn, or computed from the strength."""
    if isinstance(said, (int, float)):
        return float(said)
    if said == "end":
        return end_s
    if "log" in said:
        low, high = said["log"]
        return float(np.exp(rng.uniform(math.log(low), math.log(high))))
    if "even" in said:
        return float(rng.uniform(*said["even"]))
    if "choice" in said:
        return float(said["choice"][int(rng.integers(len(said["choice"])))])
    return float(said.get("plus", 0.0) + said.get("times", 1.0) * strength ** said.get("power", 1.0))


def _changes(
    table: Mapping[str, Any], cluster: Cluster, places: Mapping[str, list[int]], onset: float, end: float,
    ramp: float, rng: np.random.Generator, strength: float,
) -> tuple[list[Change], tuple[str, float]]:  # fmt: skip
    """Return the changes of knobs, with their way back, and (name, value) of the strength."""
    changes: list[Change] = []
    said = ("", math.nan)
    for number, entry in enumerate(table.get("set", ())):
        knob = entry["knob"]
        if knob not in KNOBS:
            raise ScenarioError(f"{table['name']}: no knob {knob!r}")
        drawn = _value(entry["value"], rng, said[1], end)
        value = strength if number == 0 and not math.isnan(strength) else drawn
        if number == 0:
            said = (entry.get("strength", knob), value)
        where = _all(knob, cluster) if entry["at"] == "$all" else places[entry["at"]]
        chosen = tuple(_on_axis(cluster, KNOBS[knob][0], entry["at"], where))
        begin, last = (0.0 if entry.get("always", False) else onset) + float(entry.get("after_s", 0.0)), end
        repeats = entry.get("every_s", 0.0)
        healthy = KNOBS[knob][1]
        at = begin
        while at < last:
            until = min(last, at + entry.get("lasts_s", last - at))
            smooth = ramp > 0 and not entry.get("sudden", False) and not repeats
            steps = RAMP_STEPS if smooth else 1
            for n in range(1, steps + 1):
                changes.append(
                    Change(at + ramp * (n - 1) / steps, knob, chosen, healthy + (value - healthy) * n / steps)
                )
            if until < last or not entry.get("stays", False):
                changes.append(Change(until, knob, chosen, healthy))
            at = at + repeats if repeats else last
    return sorted(changes, key=lambda c: c.at_s), said


def _on_axis(cluster: Cluster, axis: str, at: str, where: list[int]) -> list[int]:
    """Return places given on another axis on a knob's own: hosts of GPUs, GPUs of replicas."""
    if at == "$all":
        return where
    gpus_given = at in ("$gpu", "$gpus", "$some_gpus", "$replica_gpus", "$peer_gpu")
    replicas_given = at in ("$replica", "$others", "$prefill", "$prefills", "$pair")
    if axis == HOST and gpus_given:
        return sorted({g // GPUS for g in where})
    if axis == GPU and replicas_given:
        return [g for r in where for g in cluster.gpus_of(r)]
    if axis == GPU and at in ("$host", "$hosts", "$front"):
        return [h * GPUS + n for h in where for n in range(GPUS)]
    if axis == HOST and replicas_given:
        return [h for r in where for h in cluster.replicas[r].hosts]
    if axis == REPLICA and (gpus_given or at in ("$host", "$hosts", "$front")):
        return sorted({cluster.replica_of(g // GPUS if gpus_given else g) for g in where})
    if axis == LINK and gpus_given:
        return sorted({cluster.uplink_of(g) for g in where})
    return where


def _added(
    table: Mapping[str, Any],
    cluster: Cluster,
    onset: float,
    end: float,
    rng: np.random.Generator,
    strength: float,
) -> Demand | None:
    """Return the requests that a fault adds: of more clients, or (`to_one`) of clients of one replica."""
    said = table.get("demand")
    if said is None:
        return None
    rate = strength if not math.isnan(strength) else _value(said["rate_rps"], rng, 1.0, end)
    made = workload.synthetic(
        said.get("profile", cluster.profile), rate, onset, end, len(cluster.clients), rng
    )
    n = len(made)
    fixed = {
        key: np.full(n, int(_value(said[key], rng, 1.0, end))) for key in ("prompt", "output") if key in said
    }
    client = np.full(n, -1) if said.get("to_one", False) else made.client
    return Demand(
        made.at_s,
        client,
        fixed.get("prompt", made.prompt),
        fixed.get("output", made.output),
        made.number + ADDED,
    )
