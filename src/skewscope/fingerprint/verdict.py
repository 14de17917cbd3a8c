"""Does a collection come from an enrolled class, and from which? Open set: the answer may be "none".

Each probe adds a log-likelihood ratio of "this class" against "another platform"; the sum is compared
with two bounds after every probe (Wald's sequential test), so a verdict also says how many probes it
took. Two things are looked at per position: whether all bits are equal, and, where not, how far apart the
values are. How often a class differs from itself is measured, and pooled over classes where it was not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skewscope.fingerprint.classes import LEAST_DISTANCE, Platforms, Spread
from skewscope.fingerprint.collection import Collection
from skewscope.fingerprint.compare import Pairing, Variability, pair, variability

ERROR_RATE = 1e-4
"""Accepted share of wrong refusals, and of wrong acceptances, among independent checks."""
POOLED_WEIGHT = 20.0
"""Positions that the pooled variability of other classes counts for: one class's own soon outweigh it."""
PRIOR_NONE = 0.5
"""Before any probe, an unknown platform is as likely as all enrolled ones together."""


@dataclass(frozen=True)
class Rates:
    """Of one class: probabilities of equal bits at a position, and spreads of distances elsewhere.

    own: with itself; other: with the most similar other class; noise, apart: the distances' spreads.
    """

    own: float
    other: float
    noise: Spread
    apart: Spread
    measured: bool


def rates_of(groups: Sequence[Platforms], decimals: int | None = None) -> list[Rates]:
    """Measure every class with itself and with the others."""
    pairs, equal = sum(g.pairs for g in groups), sum(g.equal for g in groups)
    pooled = (equal + 0.5) / (pairs + 1.0)
    found = []
    for group in groups:
        others = [pair(group.answers, g.answers, decimals=decimals) for g in groups if g is not group]
        others = [p for p in others if len(p)]
        shared = [(p.equal.sum() + 0.5) / (len(p) + 1.0) for p in others]
        apart = [p.distance[~p.equal] for p in others]
        found.append(
            Rates(
                own=(group.equal + POOLED_WEIGHT * pooled) / (group.pairs + POOLED_WEIGHT),
                other=float(max(shared, default=1 / (len(group.answers) + 1.0))),
                noise=group.noise,
                apart=Spread.of(np.concatenate(apart)) if apart else Spread(),
                measured=group.pairs > 0,
            )
        )
    return found


@dataclass(frozen=True)
class ClassResult:
    """The test of one class: `accepted`, `refused` or `open`, after how many probes, and the figures."""

    name: str
    members: list[str]
    outcome: str
    probes_used: int
    log_ratio: float
    probability: float
    equal: float
    distance: float
    flips: float


@dataclass(frozen=True)
class Verdict:
    """`match`, `none`, `undecided`, or `no data` where no probe is shared with any class.

    best: the class with the highest probability; none_probability: that the platform is not enrolled;
    unstable: the collection differs from itself more than any enrolled class explains.
    """

    outcome: str
    best: str
    none_probability: float
    unstable: bool
    variability: Variability
    classes: list[ClassResult]


def likelihood_ratios(pairing: Pairing, rates: Rates) -> tuple[list[str], NDArray[np.float64]]:
    """Return the probes in order and the log-likelihood ratio that each adds.

    Positions of one probe are one generation: they share its luck, so they count as their mean.
    """
    equal = float(np.log(rates.own / rates.other))
    different = float(np.log((1 - rates.own) / (1 - rates.other)))
    ratio = different + (equal - different) * pairing.equal.astype(np.float64)
    if rates.noise.count and rates.apart.count:
        size = np.log2(np.clip(pairing.distance, LEAST_DISTANCE, 2.0**10))
        ratio = ratio + np.where(
            pairing.equal, 0.0, _density(size, rates.noise) - _density(size, rates.apart)
        )
    order = list(dict.fromkeys(pairing.probes))
    places = {probe: i for i, probe in enumerate(order)}
    index = np.array([places[probe] for probe in pairing.probes], np.int64)
    return order, np.bincount(index, ratio) / np.bincount(index)


def _density(size: NDArray[np.float64], spread: Spread) -> NDArray[np.float64]:
    """Log density of a normal distribution mixed with a thousandth of a flat one over 40 octaves."""
    normal = np.exp(-(((size - spread.mean) / spread.deviation) ** 2) / 2)
    found: NDArray[np.float64] = np.log(0.999 * normal / (spread.deviation * np.sqrt(2 * np.pi)) + 0.001 / 40)
    return found


def sequential(ratios: NDArray[np.float64], error_rate: float = ERROR_RATE) -> tuple[str, int, float]:
    """Run Wald's test: return its outcome, the probes it needed, and the sum at that point."""
    bound = np.log((1 - error_rate) / error_rate)
    total = np.cumsum(ratios)
    outside = np.flatnonzero(np.abs(total) >= bound)
    if not outside.size:
        return "open", len(ratios), float(total[-1]) if total.size else 0.0
    first = int(outside[0])
    return ("accepted" if total[first] > 0 else "refused"), first + 1, float(total[first])


def check(
    suspect: Collection,
    groups: Sequence[Platforms],
    rates: Sequence[Rates],
    *,
    decimals: int | None = None,
    error_rate: float = ERROR_RATE,
) -> Verdict:
    """Compare a collection with every enrolled class that answered some of the same probes."""
    rows = []
    for group, rate in zip(groups, rates, strict=True):
        pairing = pair(group.answers, suspect, decimals=decimals)
        if len(pairing):
            _, ratios = likelihood_ratios(pairing, rate)
            rows.append((group, pairing, *sequential(ratios, error_rate)))
    own = variability(suspect)
    if not rows:
        return Verdict("no data", "", 1.0, False, own, [])
    odds = np.exp(np.clip([row[4] for row in rows], -30, 30)) * (1 - PRIOR_NONE) / len(rows) / PRIOR_NONE
    total = 1 + odds.sum()
    classes = [
        ClassResult(
            group.name,
            list(group.members),
            outcome,
            used,
            ratio,
            float(odd / total),
            float(pairing.equal.mean()),
            float(np.median(pairing.distance)),
            float(pairing.flipped.mean()),
        )
        for (group, pairing, outcome, used, ratio), odd in zip(rows, odds, strict=True)
    ]
    classes.sort(key=lambda c: (-c.probability, c.distance))
    outcomes = {c.outcome for c in classes}
    outcome = "match" if "accepted" in outcomes else "none" if outcomes == {"refused"} else "undecided"
    unstable = own.measured and own.unequal > _most_noise(groups, rates, own.pairs)
    return Verdict(outcome, classes[0].name, float(1 / total), unstable, own, classes)


def _most_noise(groups: Sequence[Platforms], rates: Sequence[Rates], pairs: int) -> float:
    """Return the share of unequal positions that the noisiest class hardly ever exceeds."""
    most = max(1 - r.own for r, g in zip(rates, groups, strict=True))
    return float(most + 4 * np.sqrt(most * (1 - most) / pairs) + 1 / pairs)
