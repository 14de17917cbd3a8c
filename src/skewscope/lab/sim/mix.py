"""Mixes of faults: which scenarios a suite of cases is made of."""

from __future__ import annotations

import math
import tomllib
from functools import cache
from importlib.resources import files

import numpy as np

from skewscope.lab.sim import scenario

MIXES = ("balanced", "natural", "shifted")
MOST_SHIFT = 5.0


@cache
def rates() -> dict[str, float]:
    """Return onsets per 1,000 node-days by condition (mixes.toml)."""
    text = files("skewscope.lab.sim").joinpath("mixes.toml").read_text(encoding="utf-8")
    return {str(c): float(rate) for c, rate in tomllib.loads(text)["natural"].items()}


def weights(mix: str, seed: int) -> dict[str, float]:
    """Return the probability of each condition in a mix.

    balanced: all alike, for scores per class. natural: by rate, for precision and false alarms. shifted: the
    rates times random factors of up to 5, for robustness; the factors follow from the seed.
    """
    if mix not in MIXES:
        raise ValueError(f"no mix {mix!r}; there are {', '.join(MIXES)}")
    base = rates()
    values = np.ones(len(base)) if mix == "balanced" else np.array(list(base.values()))
    if mix == "shifted":
        spread = np.random.default_rng([seed, 501]).uniform(-1, 1, len(base))
        values = values * np.exp(spread * math.log(MOST_SHIFT))
    return dict(zip(base, (values / values.sum()).tolist(), strict=True))


def draw(mix: str, seed: int, count: int, controls: float = 0.3) -> list[tuple[str, int]]:
    """Return (scenario with variant, seed) of a suite; a share of it is negative controls."""
    chances = weights(mix, seed)
    rng = np.random.default_rng([seed, 502])
    by_condition = {str(scenario.load(n)["condition"]): n for n in scenario.names()}
    healthy = [n for n in scenario.names() if not scenario.load(n)["condition"]]
    conditions = list(chances)
    out = []
    for number in range(count):
        if rng.random() < controls:
            name = healthy[int(rng.integers(len(healthy)))]
        else:
            name = by_condition[conditions[int(rng.choice(len(conditions), p=list(chances.values())))]]
        variants = scenario.variants(name)
        out.append((f"{name}.{variants[int(rng.integers(len(variants)))]}", seed * 100_000 + number))
    return out
