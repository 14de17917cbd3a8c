"""Findings, entries and a small network for the tests of diagnosis."""

from __future__ import annotations

from collections.abc import Sequence

from skewscope.core.condition import Params
from skewscope.core.entry import ActionRule, CauseRule, Comparison, Entry, Hides, Timing
from skewscope.core.report import Evidence, Finding
from skewscope.diagnose.context import Context

S = 1_000_000_000
RANKS = ["10.0.0.10", "10.0.0.11", "10.0.0.12", "10.0.0.13"]
FAR = ["10.9.0.1", "10.9.0.2"]


def finding(
    condition: str = "c20",
    key: str = RANKS[0],
    onset: float = 10.0,
    end: float | None = 12.0,
    score: float = 0.9,
    detected: float | None = None,
    **evidence: float,
) -> Finding:
    """Return a finding; times in s."""
    return Finding(
        condition,
        "member",
        key,
        score,
        round(onset * S),
        round((onset + 0.2 if detected is None else detected) * S),
        None if end is None else round(end * S),
        [Evidence(n, v, "s") for n, v in evidence.items()],
    )


def entry(
    number: int, *hides: tuple[str, str], kind: str = "rank", key: str = "self", **more: object
) -> Entry:
    """Return an entry that hides (condition, where) pairs."""
    fields: dict[str, object] = {
        "number": number,
        "slug": f"slug{number}",
        "title": f"Title of {number}",
        "status": "experimental",
        "severity": "minor",
        "plane": "east_west",
        "scope": "member",
        "needs": {},
        "params": Params({}),
        "evidence": {},
        "timing": Timing(),
        "causes": (CauseRule("host_cpu", 3.0, None), CauseRule("gpu", 1.0, None)),
        "culprit_kind": kind,
        "culprit_key": key,
        "hides": tuple(Hides(c, w) for c, w in hides),
        "actions": (ActionRule("look", "Look at it", "none", True, "it is gone"),),
        "false_positives": (),
        "references": (),
        "texts": {},
        "separates": {},
    }
    return Entry(**{**fields, **more})  # type: ignore[arg-type]


def entries(*made: Entry) -> dict[str, Entry]:
    """Return entries by id."""
    return {e.id: e for e in made}


def rule(cause: str, weight: float, when: str | None = None) -> CauseRule:
    """Return a cause rule; `when` as written in entry.toml."""
    return CauseRule(cause, weight, Comparison.parse(when) if when else None)


def network(series: Sequence = ()) -> Context:
    """Return a group of four ranks behind a gateway, and a pair of hosts that talks to nobody else."""
    gate, client = "10.0.0.2", "10.0.0.3"
    links = {(a, b): 1 for i, a in enumerate(RANKS) for b in RANKS[i + 1 :]}
    links |= {(gate, RANKS[0]): 1, (client, gate): 1, (FAR[0], FAR[1]): 1}
    return Context(
        groups={RANKS[0]: RANKS},
        clients=frozenset([client]),
        names={RANKS[1]: "n1"},
        links=links,
        endpoint_groups={f"{RANKS[0]}:8000": RANKS[0]},
        series=series,
        first_ns=0,
        last_ns=30 * S,
    )
