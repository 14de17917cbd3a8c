"""The truth of a run in ticks of 100 ms: what every counter and gauge is made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skewscope.core.tables import Array
from skewscope.lab.sim.cluster import GPUS
from skewscope.lab.sim.compiled import kernel as k
from skewscope.lab.sim.output import Tokens, tokens
from skewscope.lab.sim.world import Run

TICK_S = 0.1


@dataclass
class Ticks:
    """A run's amounts per tick. Arrays have the shape (ticks, replicas | GPUs | hosts)."""

    run: Run

    @cached_property
    def edges_s(self) -> Array:
        """Borders of the ticks."""
        return np.arange(round(self.run.duration_s / TICK_S) + 1) * TICK_S

    @property
    def count(self) -> int:
        """Number of ticks."""
        return len(self.edges_s) - 1

    @cached_property
    def mid_s(self) -> Array:
        """Middles of the ticks."""
        return self.edges_s[:-1] + TICK_S / 2

    @cached_property
    def tokens(self) -> Tokens:
        """All tokens of the run."""
        return tokens(self.run)

    @cached_property
    def _rows(self) -> list[Array]:
        column = self.run.steps[:, k.T_REPLICA]
        return [np.flatnonzero(column == r.index) for r in self.run.cluster.replicas]

    def knob(self, name: str) -> Array:
        """Return a knob at the middle of each tick."""
        return self.run.settings.at(name, self.mid_s)

    @cached_property
    def _places(self) -> list[tuple[Array, Array]]:
        """Return per replica and border of a tick the step that is under way and how far it is."""
        out = []
        for rows in self._rows:
            starts, ends = self.run.steps[rows, k.T_START], self.run.steps[rows, k.T_END]
            at = np.searchsorted(starts, self.edges_s, "right") - 1
            if len(rows) == 0:
                out.append((at, np.zeros(len(at))))
                continue
            length = np.maximum(ends - starts, 1e-12)
            out.append((at, np.clip((self.edges_s - starts[at]) / length[at], 0.0, 1.0)))
        return out

    def spread(self, r: int, amounts: Array) -> Array:
        """Return amounts of replica r's steps, each spread evenly over its step.

        `amounts` has the shape (steps,) or (steps, columns), the result (ticks,) or (ticks, columns).
        """
        at, part = self._places[r]
        if len(amounts) == 0:
            return np.zeros((self.count, *amounts.shape[1:]))
        amounts = np.asarray(amounts, float)
        part = part.reshape(-1, *[1] * (amounts.ndim - 1))
        reached = np.cumsum(amounts, axis=0)[at] + (part - 1) * amounts[at]
        reached[at < 0] = 0.0
        return np.diff(reached, axis=0)

    def per_replica(self, amount: Array) -> Array:
        """Return an amount per step, shape (steps,), as ticks by replicas."""
        return np.stack([self.spread(r, amount[rows]) for r, rows in enumerate(self._rows)], axis=1)

    def last_of(self, column: int) -> Array:
        """Return a column of the steps as it stood at the end of each tick: a gauge of the engine."""
        out = np.zeros((self.count, len(self._rows)))
        for r, rows in enumerate(self._rows):
            starts = self.run.steps[rows, k.T_START]
            at = np.searchsorted(starts, self.edges_s[1:], "right") - 1
            values = self.run.steps[rows, column]
            ended = np.searchsorted(self.run.steps[rows, k.T_END], self.edges_s[1:], "right") - 1 == at
            if len(rows):
                out[:, r] = np.where(at >= 0, values[np.maximum(at, 0)], 0.0)
                idle = ended & (self.edges_s[1:] - self.run.steps[rows, k.T_END][np.maximum(at, 0)] > 0.5)
                out[idle, r] = 0.0
        return out

    def to_gpus(self, replicas: Array) -> Array:
        """Return columns per replica as columns per GPU."""
        owner = np.zeros(self.run.cluster.hosts * GPUS, np.int64)
        for r in self.run.cluster.replicas:
            owner[self.run.cluster.gpus_of(r.index)] = r.index
        return replicas[:, owner]

    @cached_property
    def length_s(self) -> Array:
        """Time in steps."""
        return self.per_replica(self.run.steps[:, k.T_END] - self.run.steps[:, k.T_START])

    @cached_property
    def steps(self) -> Array:
        """Steps, in fractions."""
        return self.per_replica(np.ones(len(self.run.steps)))

    @cached_property
    def prefill_tokens(self) -> Array:
        """Prompt tokens computed."""
        return self.per_replica(self.run.steps[:, k.T_PREFILL])

    @cached_property
    def decode_tokens(self) -> Array:
        """Tokens decoded."""
        return self.per_replica(self.run.steps[:, k.T_BATCH])

    @cached_property
    def own_s(self) -> Array:
        """Own time of each GPU."""
        out = np.zeros((self.count, self.run.cluster.hosts * GPUS))
        for r in self.run.cluster.replicas:
            rows = self._rows[r.index]
            gpus = self.run.cluster.gpus_of(r.index)
            out[:, gpus] = self.spread(r.index, self.run.own_s[rows, : len(gpus)])
        return out

    @cached_property
    def kernels_s(self) -> Array:
        """Time in kernels of its own, per GPU."""
        stages = np.array([r.stages for r in self.run.cluster.replicas], float)
        base = self.per_replica(self.run.steps[:, k.T_BASE]) / stages
        slow = self.knob("gpu_slow_ratio")
        out: Array = np.minimum(self.to_gpus(base) * slow, TICK_S)
        return out

    @cached_property
    def sequences(self) -> Array:
        """Sequences decoded per GPU: shares of a data-parallel engine, else those of its replica."""
        out = np.zeros((self.count, self.run.cluster.hosts * GPUS))
        for r in self.run.cluster.replicas:
            rows = self._rows[r.index]
            gpus = self.run.cluster.gpus_of(r.index)
            if r.data_parallel:
                out[:, gpus] = self.spread(r.index, self.run.share[rows, : len(gpus)])
            else:
                out[:, gpus] = self.spread(r.index, self.run.steps[rows, k.T_BATCH])[:, None]
        return out

    def binned(self, at_s: Array, owner: Array, size: int, amount: Array | float = 1.0) -> Array:
        """Return events at times, booked to owners 0..size-1, summed per tick."""
        tick = np.floor(at_s / TICK_S).astype(np.int64)
        inside = (tick >= 0) & (tick < self.count)
        weights = np.broadcast_to(np.asarray(amount, float), at_s.shape)[inside]
        flat = np.bincount(tick[inside] * size + owner[inside], weights, self.count * size)
        out: Array = flat.reshape(self.count, size)
        return out
