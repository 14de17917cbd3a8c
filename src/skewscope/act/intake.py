"""The report of `diagnose --json` as triggers: what may lead to an action, and on whose word."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

SCHEMA = "skewscope.report/"
_TIMES = ("ttft_s", "chunk_gap_s")
"""The impact's quantities that a change of routing can better, the users' own first."""


class IntakeError(ValueError):
    """Not a report; the message is one line."""


@dataclass(frozen=True)
class Witness:
    """One measurement behind an incident: who took it, of what kind, at which ends of which flow."""

    collector: str
    signal: str
    scope: str
    at: str = ""


@dataclass(frozen=True)
class Trigger:
    """One incident, reduced to what a decision needs. `usual` and `now` are of `metric`, in seconds."""

    incident: str
    condition: str
    culprit: str
    culprit_kind: str
    culprit_probability: float
    causes: Mapping[str, float]
    score: float
    onset_ns: int
    ended: bool
    witnesses: tuple[Witness, ...] = ()
    metric: str = ""
    usual: float = 0.0
    now: float = 0.0

    @property
    def cause(self) -> str:
        """The likeliest cause, or "unknown"."""
        return max(self.causes, key=lambda c: self.causes[c], default="unknown")

    def two_sources(self) -> str:
        """Return in words which two witnesses are independent; empty where no two are.

        Different collectors and different physical signals, or the same flow seen at both of its ends.
        """
        for a, b in combinations(self.witnesses, 2):
            if a.collector != b.collector and a.signal != b.signal:
                return f"{a.signal} at {a.collector} and {b.signal} at {b.collector}"
            ends = set(a.scope.split("->"))
            if a.scope == b.scope and len(ends) == 2 and {a.at, b.at} == ends:
                return f"both ends of {a.scope}"
        return ""


@dataclass(frozen=True)
class Intake:
    """A report as the policy sees it; `first_ns` and `last_ns` bound what it has seen."""

    first_ns: int
    last_ns: int
    triggers: tuple[Trigger, ...] = field(default=())
    streams_seen: bool = False


def read(text: str, signals: Mapping[str, str]) -> Intake:
    """Parse the text of a report; `signals` says per condition which physical signal it rests on.

    Raises IntakeError. Incidents without a culprit are left out: nobody can be acted upon.
    """
    try:
        data = json.loads(text)
        if not str(data["schema"]).startswith(SCHEMA):
            raise IntakeError(f"schema {data['schema']!r} is not {SCHEMA}1")
        first, last = (_whole(v) for v in data["span_ns"])
        owners = {str(i["path"]): str(i.get("host") or "") for i in data["inputs"]}
        triggers = tuple(_trigger(i, owners, signals) for i in data["incidents"] if i["culprits"])
        serving = any(set(h["roles"]) & {"engine", "gateway"} for h in data["hosts"])
    except IntakeError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise IntakeError(f"not a report of `skewscope diagnose --json`: {_short(error)}") from None
    return Intake(first, last, triggers, serving)


def _short(error: Exception) -> str:
    text = " ".join(str(error).split())[:80]
    return f"no {text}" if isinstance(error, KeyError) else text or type(error).__name__


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise IntakeError(f"a time must be a whole number of ns, not {str(value)[:40]!r}")
    return value


def _share(value: Any) -> float:
    """Return a probability; what is not one counts as 0, so that it permits nothing."""
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1
    return float(value) if good else 0.0


def _trigger(i: Mapping[str, Any], owners: Mapping[str, str], signals: Mapping[str, str]) -> Trigger:
    culprit = max(i["culprits"], key=lambda c: _share(c["probability"]))
    metric, usual, now = _cost(i["impact"])
    causes: dict[str, float] = {}
    for c in i["causes"]:
        causes[str(c["class"])] = causes.get(str(c["class"]), 0.0) + _share(c["probability"])
    return Trigger(
        incident=str(i["id"]),
        condition=str(i["condition"]),
        culprit=str(culprit["id"]),
        culprit_kind=str(culprit["kind"]),
        culprit_probability=_share(culprit["probability"]),
        causes=causes,
        score=_share(i["score"]),
        onset_ns=_whole(i["onset_ns"]),
        ended=i.get("end_ns") is not None,
        witnesses=tuple(sorted(set(_witnesses(i, owners, signals)), key=str)),
        metric=metric,
        usual=usual,
        now=now,
    )


def _cost(impact: Mapping[str, Any]) -> tuple[str, float, float]:
    """Return the first quantity that is known before and during, or ("", 0, 0)."""
    for name in _TIMES:
        pair = impact.get(name) or ()
        known = [float(v) for v in pair if isinstance(v, (int, float)) and math.isfinite(v) and v > 0]
        if len(known) == len(pair) == 2:
            return name, known[0], known[1]
    return "", 0.0, 0.0


def _witnesses(
    i: Mapping[str, Any], owners: Mapping[str, str], signals: Mapping[str, str]
) -> Iterator[Witness]:
    for finding in i["findings"]:
        signal = signals.get(str(finding["condition"]))
        for evidence in finding["evidence"] if signal else []:
            files = {str(s["file"]) for s in evidence["spans"]} | {
                str(p["file"]) for p in evidence["packets"]
            }
            for file in files:
                host = owners.get(file, "")
                yield Witness(host or file, str(signal), _flow(finding), host)


def _flow(finding: Mapping[str, Any]) -> str:
    """Return the scope's key, for pairs without ports: "a->b"."""
    key = str(finding["key"])
    return re.sub(r":\d+(?=->|$)", "", key) if "->" in key else key
