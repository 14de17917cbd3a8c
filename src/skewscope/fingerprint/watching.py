"""A replica over time: does it stay in its class? Three ways of leaving it, told apart.

Each probe's log-likelihood ratio against the class is cut off below at zero and summed (CUSUM), so an
alarm needs recent probes, however long the replica was right before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from skewscope.fingerprint.classes import Platforms
from skewscope.fingerprint.collection import Collection
from skewscope.fingerprint.compare import pair
from skewscope.fingerprint.verdict import Rates, Verdict, check, likelihood_ratios

ALARM = float(np.log(10_000))
"""Sum at which a replica has left its class: about 10,000 probes between false alarms (Wald's bound)."""

IN_CLASS, OTHER_CLASS, UNKNOWN, UNSTABLE, NO_DATA = (
    "in class",
    "stable, another known class",
    "stable, no known class",
    "unstable: differs from itself",
    "no data",
)
CONDITION = {IN_CLASS: "", OTHER_CLASS: "c51", UNKNOWN: "c51", UNSTABLE: "c41", NO_DATA: ""}
"""A stable change is one of platform or of weights; a replica that contradicts itself computes wrongly."""


@dataclass(frozen=True)
class Watched:
    """One replica: its state, the class that it should be in, and the first probe at which it left.

    alarm_probe: -1 where there is none; statistic: the highest sum reached, of `ALARM`.
    """

    replica: str
    expected: str
    state: str
    condition: str
    alarm_probe: int
    statistic: float
    seen: str
    verdict: Verdict


def watch(
    replica: Collection,
    expected: str,
    groups: Sequence[Platforms],
    rates: Sequence[Rates],
    decimals: int | None = None,
) -> Watched:
    """Follow one replica through its repetitions, in the order in which they were recorded.

    expected: name of a class or of one of its members; KeyError where there is no such class.
    """
    home = next((i for i, g in enumerate(groups) if expected in (g.name, *g.members)), None)
    if home is None:
        raise KeyError(expected)
    sums: list[float] = [0.0]
    for repeat in sorted({int(r) for r in replica.repeats}):
        pairing = pair(groups[home].answers, replica, repeats=(0, repeat), decimals=decimals)
        if len(pairing):
            for ratio in likelihood_ratios(pairing, rates[home])[1]:
                sums.append(max(0.0, sums[-1] - float(ratio)))
    verdict = check(replica, groups, rates, decimals=decimals)
    alarms = [i for i, value in enumerate(sums) if value >= ALARM]
    state = _state(verdict, groups[home].name, alarmed=bool(alarms), asked=len(sums) > 1)
    return Watched(
        replica.name,
        groups[home].name,
        state,
        CONDITION[state],
        alarms[0] if alarms else -1,
        max(sums),
        verdict.best,
        verdict,
    )


def _state(verdict: Verdict, home: str, *, alarmed: bool, asked: bool) -> str:
    if not asked:
        return NO_DATA
    if verdict.unstable:
        return UNSTABLE
    if not alarmed:
        return IN_CLASS
    return OTHER_CLASS if verdict.outcome == "match" and verdict.best != home else UNKNOWN
