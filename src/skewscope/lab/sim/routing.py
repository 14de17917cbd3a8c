"""The router: which replica a request goes to."""

from __future__ import annotations

import numpy as np

from skewscope.core.tables import Array
from skewscope.lab.sim.cluster import Cluster
from skewscope.lab.sim.compiled import kernel as k
from skewscope.lab.sim.knobs import Settings

LONG_TOKENS = 250
"""Answers from this length on are the long ones of a router that is biased by length."""


class Router:
    """Chooses by requests in flight, unless a knob says otherwise."""

    def __init__(self, cluster: Cluster, settings: Settings, rng: np.random.Generator) -> None:
        self._settings, self._rng = settings, rng
        self._pool = cluster.pool("prefill") or cluster.pool("mixed")
        self._decoding = cluster.pool("decode")
        self.biased = self._pool[0]
        """The replica that a biased or starving router picks on; the caller may set it."""
        self._turn = 0
        self._known = np.zeros(len(cluster.replicas))
        self._polled_s = -np.inf
        self.refresh()

    def refresh(self) -> None:
        """Take over the knobs as they are; call it after each change."""
        now = self._settings.now
        away = (now["restarting"] + now["cold"])[self._pool] > 0
        self._open = [r for r, out in zip(self._pool, away, strict=True) if not out] or self._pool
        self._weights = now["router_weight"][self._open]
        self._even = bool(self._weights.min() >= 1)
        self._sticky, self._by_size = (
            self._settings.one("sticky_share"),
            self._settings.one("length_bias") > 0,
        )
        self._poll_s = self._settings.one("router_poll_s")

    def choose(self, at_s: float, client: int, output: int, state: Array) -> int:
        """Return the replica for a request."""
        if client < 0:  # the clients that a fault adds ask one replica
            return self.biased
        if self._by_size and len(self._open) > 1:
            return self._by_length(output, self._open)
        if self._sticky > 0 and (client * 37 % 101) / 101 < self._sticky:
            return self.biased
        if self._even:
            return self._least(at_s, self._open, state)
        # Replicas that count in full share by load, the others get their weight of an even share.
        at = int(self._rng.random() * len(self._open))
        if self._weights[at] < 1 and self._rng.random() < self._weights[at]:
            return self._open[at]
        full = [r for r, w in zip(self._open, self._weights, strict=True) if w >= 1] or self._open
        return self._least(at_s, full, state)

    def decode_replica(self, state: Array) -> int:
        """Return the decoding replica with the fewest sequences."""
        load = state[self._decoding, k.S_RUNNING] + state[self._decoding, k.S_WAITING]
        return self._decoding[int(np.argmin(load))]

    def _least(self, at_s: float, pool: list[int], state: Array) -> int:
        """Return the replica with the fewest requests, as far as the router knows."""
        if self._poll_s == 0:
            load = state[pool, k.S_RUNNING] + state[pool, k.S_WAITING]
            best = np.flatnonzero(load == load.min())
            return pool[int(best[int(self._rng.random() * len(best))])]
        if at_s - self._polled_s >= self._poll_s:
            self._known, self._polled_s = state[:, k.S_RUNNING] + state[:, k.S_WAITING], at_s
        return pool[int(np.argmin(self._known[pool]))]  # ties go to the first

    def _by_length(self, output: int, pool: list[int]) -> int:
        self._turn += 1
        if output >= LONG_TOKENS:
            return self.biased
        others = [r for r in pool if r != self.biased]
        return others[self._turn % len(others)]
