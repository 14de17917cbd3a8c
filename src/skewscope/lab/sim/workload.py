"""Who asks what, when: arrivals with the statistics of the public traces, or of a trace file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from skewscope.core.tables import Array
from skewscope.lab.bed.arrivals import trace
from skewscope.lab.sim.params import load

COLUMNS = ("at_s", "client", "prompt", "output", "number")
ADDED = 1_000_000
"""Numbers from here on belong to requests that a fault adds."""


@dataclass(frozen=True)
class Demand:
    """Requests in the order of arrival: arrays of shape (requests,)."""

    at_s: Array
    client: Array
    prompt: Array
    output: Array
    number: Array
    """What a request's own noise is drawn by: the same request has the same in every run of a seed."""

    def __len__(self) -> int:
        return len(self.at_s)

    def take(self, rows: Array) -> Demand:
        """Return some of the requests."""
        return Demand(*(getattr(self, name)[rows] for name in COLUMNS))

    @staticmethod
    def merged(parts: list[Demand]) -> Demand:
        """Return several demands as one, in the order of arrival."""
        joined = [np.concatenate([getattr(p, n) for p in parts]) for n in COLUMNS]
        order = np.argsort(joined[0], kind="stable")
        return Demand(*(column[order] for column in joined))


def synthetic(
    profile: str, rate_rps: float, start_s: float, end_s: float, clients: int, rng: np.random.Generator
) -> Demand:
    """Draw a demand: gamma-distributed gaps, log-normal lengths, and clients of very unequal size.

    The largest of 40 clients sends about a quarter of all requests (ServeGen: 16 to 52 %).
    """
    shape_of = load()["workload"][profile]
    cv = shape_of["arrival_cv"]
    expected = int(max(rate_rps, 1e-9) * (end_s - start_s) * 1.5 + 60 * max(cv, 1.0) ** 2)
    gaps = rng.gamma(1 / cv**2, cv**2 / max(rate_rps, 1e-9), expected)
    at = start_s + np.cumsum(gaps)
    at = at[at < end_s]
    n = len(at)
    weights = 1.0 / np.arange(1, clients + 1) ** 1.05
    return Demand(
        at,
        rng.choice(clients, n, p=weights / weights.sum()),
        _lengths(shape_of, "prompt", n, rng),
        _lengths(shape_of, "output", n, rng),
        np.arange(n),
    )


def from_trace(path: Path, rate_rps: float, end_s: float, clients: int, rng: np.random.Generator) -> Demand:
    """Read an Azure or Mooncake trace, its time scaled to a mean rate; raises bed.arrivals.TraceError."""
    rows = [a for a in trace(path, rate_rps, 16384, 2048) if a.due_s < end_s]
    draw = Random(int(rng.integers(2**32)))
    return Demand(
        np.array([a.due_s for a in rows], float),
        np.array([draw.randrange(clients) for _ in rows], np.int64),
        np.array([a.prompt for a in rows], np.int64),
        np.array([a.answer for a in rows], np.int64),
        np.arange(len(rows)),
    )


def _lengths(shape: dict[str, float], kind: str, n: int, rng: np.random.Generator) -> Array:
    drawn = shape[f"{kind}_median"] * np.exp(shape[f"{kind}_sigma"] * rng.standard_normal(n))
    out: Array = np.clip(np.round(drawn), 1 if kind == "output" else 8, shape[f"{kind}_most"]).astype(
        np.int64
    )
    return out
