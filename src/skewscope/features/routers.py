"""How a client of several serving endpoints (a gateway, a router) spreads requests and load over them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from skewscope.core.features import FeatureColumn, FeatureRows, FeatureSpec, Slice
from skewscope.core.tables import Array
from skewscope.features.streams import EndpointRows

RECENT = 64
"""Latest choices in which a change is looked for."""

BELIEVED = 512
"""Older choices that make the usual shares; more are forgotten in proportion."""

MIN_USUAL = 32
"""Older choices below which equal shares are assumed."""

PRIOR = 4.0
"""Weight, in choices, of the belief that a router picks at random, until its habit has been seen."""

LEAST_SPREAD, MOST_SPREAD = 0.4, 3.0
"""Bounds of the dispersion: round robin varies less than chance, affinity varies more. Below 0.4 a
handful of alternating choices would make any pair of equal ones look impossible."""

MEMORY_STEPS = 20.0
"""Steps over which the load of a backend is averaged: about the life of a short answer."""

MAX_ROUTERS = 1024
MAX_BACKENDS = 1024


@dataclass
class _Router:
    """What is known of one router. Backends are indexed in order of appearance."""

    backends: list[int] = field(default_factory=list)
    choices: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=RECENT))
    usual: Array = field(default_factory=lambda: np.zeros(0))
    idle_ns: Array = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Since when each backend has had nothing to do, 0 = it is busy."""
    missed: Array = field(default_factory=lambda: np.zeros(0))
    """Requests given to others since it has been idle."""
    load: Array = field(default_factory=lambda: np.zeros(0))
    """Averaged requests in hand."""
    queue: Array = field(default_factory=lambda: np.zeros(0))
    """Averaged requests without an answer."""

    def index(self, endpoint: int) -> int:
        """Return the backend's index, learning it where new; -1 beyond the limit."""
        if endpoint in self.backends:
            return self.backends.index(endpoint)
        if len(self.backends) >= MAX_BACKENDS:
            return -1
        self.backends.append(endpoint)
        for name in ("usual", "idle_ns", "missed", "load", "queue"):
            old = getattr(self, name)
            setattr(self, name, np.append(old, np.zeros(1, dtype=old.dtype)))
        return len(self.backends) - 1

    def choose(self, backend: int, ts_ns: int) -> None:
        """Take one request; the choice that leaves the recent ones joins the usual ones."""
        if len(self.choices) == RECENT:
            self.usual[self.choices[0][0]] += 1.0
            if self.usual.sum() > BELIEVED:
                self.usual *= BELIEVED / self.usual.sum()
        self.choices.append((backend, ts_ns))
        others = np.arange(len(self.backends)) != backend
        self.missed[others] += self.idle_ns[others] > 0

    def expected(self) -> Array:
        """Return the usual share of each backend: equal until enough was seen of all of them."""
        count = len(self.backends)
        if self.usual.sum() < MIN_USUAL or (self.usual == 0).any():
            return np.full(count, 1.0 / count)
        share: Array = self.usual / self.usual.sum()
        return share


COLUMNS = {
    "backends": FeatureColumn("1", "serving endpoints that this address asks"),
    "new_requests": FeatureColumn("1", "requests it sent in the window"),
    "share_evidence": FeatureColumn(
        "nats", "log likelihood ratio of the best recent change of shares against the usual ones, over the "
        "dispersion of the router's own habit"),
    "whole_evidence": FeatureColumn(
        "nats", "log likelihood ratio of the shares of all requests so far against equal ones, 0 once the "
        "usual shares are known"),
    "share_max_ratio": FeatureColumn("1", "largest share since that change over the usual one"),
    "share_min_ratio": FeatureColumn("1", "smallest share since that change over the usual one"),
    "changed_requests": FeatureColumn("1", "requests since that change"),
    "load_skew": FeatureColumn("1", "averaged requests in hand of the busiest backend over the mean of all"),
    "load_gap": FeatureColumn("1", "averaged requests in hand, busiest less freest backend"),
    "queue_max": FeatureColumn("1", "averaged requests without an answer at the backend with most of them"),
    "queue_min": FeatureColumn("1", "the same at the backend with fewest"),
    "idle_steps": FeatureColumn("1", "steps since which a backend has had nothing while a peer had requests"),
    "missed_nats": FeatureColumn("nats", "improbability that it got none of the requests sent meanwhile"),
    "idle_uploads": FeatureColumn("1", "requests at that backend of which the body does not come in"),
    "busy_step_ratio": FeatureColumn("1", "the busiest host's gap between rounds over the usual one, else 1"),
}  # fmt: skip


class Routers:
    """Choices and load per router; every backend is judged against its peers."""

    SPEC = FeatureSpec(
        "router", "spread of requests over the serving endpoints that one address asks", COLUMNS
    )
    NEEDS: Sequence[str] = ("host", "endpoint")

    def __init__(self) -> None:
        self._routers: dict[int, _Router] = {}

    def update(self, slice_: Slice, others: Mapping[str, FeatureRows]) -> FeatureRows:
        """Absorb one slice."""
        rows = cast(EndpointRows, others["endpoint"])
        self._learn(rows)
        gap = _per_endpoint(rows, "chunk_gap_ref_s")
        window_s = (slice_.end_ns - slice_.start_ns) / 1e9
        keys: list[str] = []
        columns: dict[str, list[float]] = {n: [] for n in COLUMNS}
        onset: dict[str, list[int]] = {"share_evidence": [], "idle_steps": []}
        for address, router in sorted(self._routers.items()):
            if len({rows.endpoints[e][0] for e in router.backends}) < 2:
                continue
            # A request whose body is still on its way gives the engine nothing to do.
            held = (rows.open_client == address) & ~rows.open_uploading
            load = _tally(router, rows.open_endpoint[held])
            queue = _tally(router, rows.open_endpoint[held & rows.open_waiting])
            step_s = np.nanmin(np.append(gap[router.backends], np.inf))
            self._settle(router, load, queue, window_s / step_s, slice_)
            values = {
                "backends": float(len(router.backends)),
                "new_requests": float((rows.new_client == address).sum()),
                "idle_uploads": self._uploads(router, rows),
                **_load(router, _per_endpoint(rows, "round_gap_ratio")[router.backends]),
            }
            share, changed_ns = _change(router)
            idle, idle_ns = _idle(router, load, step_s, slice_.end_ns)
            values.update(share, **idle)
            keys.append(slice_.directory.addresses[address])
            for name in COLUMNS:
                columns[name].append(values[name])
            onset["share_evidence"].append(changed_ns)
            onset["idle_steps"].append(idle_ns)
        return FeatureRows(
            "router",
            keys,
            {n: np.array(v, dtype=np.float64) for n, v in columns.items()},
            {n: np.array(v, dtype=np.int64) for n, v in onset.items()},
        )

    def _learn(self, rows: EndpointRows) -> None:
        for client, endpoint in {*zip(rows.open_client.tolist(), rows.open_endpoint.tolist(), strict=True)}:
            self._router(client, endpoint)
        for client, endpoint, ts in zip(
            rows.new_client.tolist(), rows.new_endpoint.tolist(), rows.new_ns.tolist(), strict=True
        ):
            router, backend = self._router(client, endpoint)
            if router is not None and backend >= 0:
                router.choose(backend, ts)

    def _router(self, client: int, endpoint: int) -> tuple[_Router | None, int]:
        router = self._routers.get(client)
        if router is None:
            if len(self._routers) >= MAX_ROUTERS:
                return None, -1
            router = self._routers[client] = _Router()
        return router, router.index(endpoint)

    def _settle(self, router: _Router, load: Array, queue: Array, steps: float, slice_: Slice) -> None:
        weight = 1.0 - np.exp(-steps / MEMORY_STEPS)
        router.load += weight * (load - router.load)
        router.queue += weight * (queue - router.queue)
        idle = load == 0
        began = idle & (router.idle_ns == 0)
        router.missed[began | ~idle] = 0.0
        router.idle_ns = np.where(idle, np.where(began, slice_.start_ns, router.idle_ns), 0)

    def _uploads(self, router: _Router, rows: EndpointRows) -> float:
        uploading = _per_endpoint(rows, "uploading_requests")[router.backends]
        return float(np.nanmax(np.append(uploading, 0.0)))


def _per_endpoint(rows: EndpointRows, name: str) -> Array:
    out = np.full(len(rows.endpoints), np.nan)
    out[rows.ids] = rows.columns[name]
    return out


def _tally(router: _Router, endpoints: Array) -> Array:
    return np.array([(endpoints == e).sum() for e in router.backends], dtype=np.float64)


def _load(router: _Router, pace: Array) -> dict[str, float]:
    mean, busy = router.load.mean(), pace[int(router.load.argmax())]
    return {
        "busy_step_ratio": float(busy) if np.isfinite(busy) else 1.0,
        "load_skew": float(router.load.max() / mean) if mean > 0 else 1.0,
        "load_gap": float(router.load.max() - router.load.min()),
        "queue_max": float(router.queue.max()),
        "queue_min": float(router.queue.min()),
    }


def _change(router: _Router) -> tuple[dict[str, float], int]:
    """Find the most likely start, among the recent choices, of shares unlike the usual ones."""
    count, usual = len(router.choices), router.expected()
    quiet = {
        "share_evidence": 0.0,
        "whole_evidence": 0.0,
        "share_max_ratio": 1.0,
        "share_min_ratio": 1.0,
        "changed_requests": 0.0,
    }
    if not count:
        return quiet, 0
    chosen = np.array([b for b, _ in router.choices])
    one = np.zeros((count, len(usual)))
    one[np.arange(count), chosen] = 1.0
    since = one[::-1].cumsum(axis=0)[::-1]  # (starts, backends): choices from each start on
    total = since.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = np.where(since > 0, since * np.log(since / (total * usual)), 0.0).sum(axis=1)
    # Dispersion before each start: how often a choice equals the one before it, against chance.
    same = np.concatenate(([0.0], np.cumsum(chosen[1:] == chosen[:-1])))
    pairs = np.maximum(np.arange(count) - 1, 0)
    chance = float((usual**2).sum())
    habit = (np.concatenate(([0.0], same[:-1])) + PRIOR * chance) / (pairs + PRIOR)
    evidence = gain / np.clip(habit / chance, LEAST_SPREAD, MOST_SPREAD)
    at = int(evidence.argmax())
    share = since[at] / total[at] / usual
    return {
        "share_evidence": float(evidence[at]),
        "whole_evidence": 0.0 if router.usual.any() else float(gain[0]),
        "share_max_ratio": float(share.max()),
        "share_min_ratio": float(share.min()),
        "changed_requests": float(total[at, 0]),
    }, int(router.choices[at][1])


def _idle(router: _Router, load: Array, step_s: float, end_ns: int) -> tuple[dict[str, float], int]:
    """Return how long and how improbably the most neglected backend has been idle beside a busy peer."""
    idle = router.idle_ns > 0
    if not idle.any() or load.max() < 1 or not np.isfinite(step_s):
        return {"idle_steps": 0.0, "missed_nats": 0.0}, 0
    missed = -router.missed * np.log1p(-np.minimum(router.expected(), 0.999))
    worst = int(np.where(idle, missed, -1.0).argmax())
    since = int(router.idle_ns[worst])
    # Starvation began with the first request that passed it by, while it still worked off the last ones.
    later = [ts for _, ts in _after_last(router, worst)]
    steps = (end_ns - since) / 1e9 / step_s
    return {"idle_steps": steps, "missed_nats": float(missed[worst])}, min([since, *later])


def _after_last(router: _Router, backend: int) -> list[tuple[int, int]]:
    """Return the recent choices since the last one of a backend; none where it is not among them."""
    choices = list(router.choices)
    at = [i for i, (chosen, _) in enumerate(choices) if chosen == backend]
    return choices[at[-1] + 1 :] if at else []


FEATURE = Routers
