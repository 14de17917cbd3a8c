"""Scrapes: when a job reads its targets, what it gets, and the rows of that."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from skewscope.core.directory import Directory
from skewscope.core.schemas import COUNTERS, METRICS, Kind, Side
from skewscope.core.tables import Array, Table
from skewscope.lab.sim.params import load
from skewscope.lab.sim.ticks import TICK_S
from skewscope.sources.canonical import Name, canonical

TREES = ("sysfs_infiniband", "sysfs_pci", "ethtool")
"""Products that are files of whole numbers."""


@dataclass(frozen=True)
class Series:
    """What one product calls a canonical name."""

    raw: str
    said: Name


@cache
def series_of(product: str) -> dict[str, Series]:
    """Return what is emitted of a product, by canonical name; raises KeyError for an unknown name."""
    out = {}
    for raw in _file()[product]["names"]:
        said = canonical(product, raw)
        if said is None:
            raise KeyError(f"series.toml: {product}: {raw} is not in the name table")
        out[said.name] = Series(raw, said)
    return out


def products() -> list[str]:
    """Return the products that are emitted."""
    return list(_file())


@cache
def _file() -> dict[str, Any]:
    text = files("skewscope.lab.sim.vantage").joinpath("series.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def labels_text(labels: Mapping[str, str]) -> str:
    """Return labels as the directory keeps them."""
    return ",".join(f'{k}="{v}"' for k, v in sorted(labels.items()))


@dataclass(frozen=True)
class Column:
    """One series of every entity of a job."""

    name: str
    values: Array
    """In the canonical unit, shape (scrapes, entities)."""
    raw: Array
    """The same as the product says it: whole numbers in trees, nine digits behind the point on pages."""
    kind: Kind
    side: Side
    table: str
    labels: Mapping[str, str] = field(default_factory=dict)
    bound: float = np.nan
    ceiling: float = 0.0


class Job:
    """One scrape job: its entities, when each is read, and the columns read.

    All entities of one target (a host, an endpoint) are read at the same moments, which differ between
    targets; now and then a scrape is lost. Values are read at those moments, not at ticks.
    """

    def __init__(
        self,
        product: str,
        entities: Sequence[str],
        targets: Sequence[str],
        duration_s: float,
        rng: np.random.Generator,
        *,
        period_s: float = 1.0,
        sources: Sequence[str] = (),
    ) -> None:
        """`targets` names the target of each entity; rows carry the index of its source."""
        self.product, self.entities, self.targets = product, list(entities), list(targets)
        self.sources = list(sources) or [f"{product}/{t}" for t in self.targets]
        noise = load()["noise"]
        names = sorted(set(targets))
        count = max(1, int(duration_s / period_s))
        phase = rng.random(len(names)) * period_s
        jitter = rng.normal(0.0, noise["scrape_jitter_s"], (count, len(names)))
        times = np.arange(count)[:, None] * period_s + phase + np.clip(jitter, -0.1, 0.1)
        of = np.array([names.index(t) for t in targets])
        self.times_s = np.clip(times, 0.0, duration_s - 1e-3)[:, of]
        self.kept = (rng.random((count, len(names))) >= noise["scrape_lost_share"])[:, of]
        self.columns: list[Column] = []
        self.ahead_s: Array | float = 0.0
        """What the clock that stamps the rows is ahead, shape (scrapes, entities)."""
        self._rng = rng
        self._series = series_of(product)
        self._labels = _file()[product].get("labels", {})

    def add(self, name: str, values: Array, labels: Mapping[str, str] | None = None, bound: float = np.nan,
            kind: Kind | None = None) -> None:  # fmt: skip
        """Add a column of values of shape (scrapes, entities)."""
        said = self._series[name].said
        made = said.kind if kind is None else kind
        scale = 1.0 if made in (Kind.BUCKET, Kind.COUNT) else said.scale
        raw = np.round(np.broadcast_to(values, self.times_s.shape) / scale, 0 if self.product in TREES else 9)
        told = {**self._labels, **(labels or {})}
        self.columns.append(
            Column(name, raw * scale, raw, made, said.side, said.table, told, bound, said.ceiling)
        )

    def gauge(self, name: str, ticks: Array, noise_ratio: float = 0.0, digits: float = 0.0) -> None:
        """Add a gauge from its value per tick, shape (ticks, entities), read as it stands at the moment."""
        at = np.clip((self.times_s / TICK_S).astype(np.int64), 0, len(ticks) - 1)
        values = np.take_along_axis(np.asarray(ticks, float), at, axis=0)
        if noise_ratio:
            values = values * (1 + noise_ratio * self._rng.standard_normal(values.shape))
        self.add(name, np.round(values / digits) * digits if digits else values)

    def mean(self, name: str, ticks: Array, noise_ratio: float = 0.0, over_s: float = 1.0) -> None:
        """Add a gauge that is the mean of the last second, as profiling fields and percentages are."""
        total = cumulated(ticks)
        now, before = self._read(total, 0.0), self._read(total, over_s)
        values = (now - before) / (np.minimum(self.times_s, over_s) / TICK_S).clip(1e-9)
        if noise_ratio:
            values = values * (1 + noise_ratio * self._rng.standard_normal(values.shape))
        self.add(name, values)

    def counter(
        self,
        name: str,
        ticks: Array,
        *,
        start: float = 1e6,
        whole: bool = True,
        cached_s: float = 0.0,
        labels: Mapping[str, str] | None = None,
        reset_s: Array | None = None,
    ) -> None:
        """Add a counter from its growth per tick.

        It begins at a random count up to `start` (as after days of uptime), is whole, wraps at 32 bits where
        the hardware's does, stays at its ceiling where it has one, and may be up to `cached_s` old.
        `reset_s` says when an entity's process began anew (NaN = never).
        """
        total = cumulated(ticks)
        age = cached_s * self._rng.random(self.times_s.shape)
        values = self._read(total, age) + np.floor(start * self._rng.random(len(self.entities)))
        if reset_s is not None:
            begun = np.nan_to_num(reset_s, nan=np.inf)
            tick = np.clip((np.where(np.isfinite(begun), begun, 0) / TICK_S).astype(int), 0, len(total) - 1)
            at = np.take_along_axis(total, tick[None, :], axis=0)
            values = np.where(self.times_s >= begun, self._read(total, age) - at, values)
        if whole:
            values = np.floor(values + 1e-6)
        said = self._series[name].said
        if said.ceiling:
            values = np.minimum(values, said.ceiling)
        elif said.kind == Kind.COUNTER32:
            values = np.mod(values, 2.0**32)
        self.add(name, values, labels)

    def histogram(self, name: str, at_s: Array, owner: Array, amount: Array, bounds: Sequence[float]) -> None:
        """Add a histogram of events at times, booked to entities: buckets, sum and count."""
        size = len(self.entities)
        ticks = round(self.times_s.max() / TICK_S) + 2
        tick = np.clip((at_s / TICK_S).astype(np.int64), 0, ticks - 1)
        slot = np.searchsorted(np.asarray(bounds), amount)
        flat = (tick * size + owner) * (len(bounds) + 1) + slot
        counts = np.bincount(flat, minlength=ticks * size * (len(bounds) + 1))
        counts = counts.reshape(ticks, size, len(bounds) + 1).cumsum(axis=2)
        sums = np.bincount(tick * size + owner, amount, ticks * size).reshape(ticks, size)
        for number, bound in enumerate((*bounds, np.inf)):
            values = np.floor(self._read(cumulated(counts[:, :, number]), 0.0) + 1e-6)
            self.add(name, values, bound=bound)
        self.add(name, self._read(cumulated(sums), 0.0), kind=Kind.SUM)
        self.add(name, np.floor(self._read(cumulated(counts[:, :, -1]), 0.0) + 1e-6), kind=Kind.COUNT)

    def hold(self, held: Array) -> None:
        """Repeat the last page where `held`, shape (scrapes, entities), is true: a frozen exporter."""
        keep = np.where(held, 0, np.arange(len(held))[:, None])
        last = np.maximum.accumulate(keep, axis=0)
        for number, c in enumerate(self.columns):
            raw, values = (np.take_along_axis(v, last, axis=0) for v in (c.raw, c.values))
            self.columns[number] = replace(c, raw=raw, values=values)

    def _read(self, total: Array, age_s: Array | float) -> Array:
        """Return cumulated values, shape (ticks + 1, entities), at the scrapes less an age."""
        at = np.clip((self.times_s - age_s) / TICK_S, 0, len(total) - 1 - 1e-9)
        low = at.astype(np.int64)
        part = at - low
        before = np.take_along_axis(total, low, axis=0)
        out: Array = before + part * (np.take_along_axis(total, low + 1, axis=0) - before)
        return out

    def tables(self, directory: Directory, start_ns: int) -> dict[str, Table]:
        """Return the rows in event-time order, by schema name."""
        out = {}
        entity = np.array([directory.entities.id(e) for e in self.entities], np.uint32)
        base = len(directory.sources)
        unique = list(dict.fromkeys(self.sources))
        directory.sources += unique
        source = np.array([base + unique.index(s) for s in self.sources], np.uint16)
        order = np.argsort(self.times_s, axis=None, kind="stable")
        order = order[self.kept.ravel()[order]]
        stamped = self.times_s + self.ahead_s
        ts_ns = start_ns + (stamped.ravel()[order] * 1e9).astype(np.int64)
        column_of = order % len(self.entities)
        scrape = order // len(self.entities)
        for schema in (COUNTERS, METRICS):
            chosen = [c for c in self.columns if c.table == schema.name]
            if not chosen:
                continue
            n, width = len(order), len(chosen)
            values = np.empty((n, width))
            for number, c in enumerate(chosen):
                values[:, number] = c.values[scrape, column_of]
            columns = {
                "ts_ns": np.repeat(ts_ns, width),
                "source": np.repeat(source[column_of], width),
                "line": np.tile(np.arange(1, width + 1, dtype=np.uint32), n),
                "entity": np.repeat(entity[column_of], width),
                "name": np.tile(np.array([directory.names.id(c.name) for c in chosen], np.uint32), n),
                "value": values.ravel(),
                "kind": np.tile(np.array([c.kind for c in chosen], np.uint8), n),
            }
            if schema is COUNTERS:
                columns["side"] = np.tile(np.array([c.side for c in chosen], np.uint8), n)
                columns["ceiling"] = np.tile(np.array([c.ceiling for c in chosen]), n)
            else:
                texts = [directory.labels.id(labels_text(c.labels)) for c in chosen]
                columns["labels"] = np.tile(np.array(texts, np.uint32), n)
                columns["bound"] = np.tile(np.array([c.bound for c in chosen]), n)
            out[schema.name] = Table(schema, columns)
        return out


def cumulated(ticks: Array) -> Array:
    """Return running totals with a zero in front, shape (ticks + 1, entities)."""
    return np.concatenate([np.zeros((1, ticks.shape[1])), np.cumsum(ticks, axis=0)])
