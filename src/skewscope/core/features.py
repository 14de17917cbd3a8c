"""What a feature table is: one row per scope and window, columns with units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from skewscope.core.directory import Directory
from skewscope.core.tables import Array, Table


@dataclass(frozen=True)
class FeatureColumn:
    """One feature: unit and meaning. Values are float64, NaN = not known in this window."""

    unit: str
    doc: str


@dataclass(frozen=True)
class FeatureSpec:
    """A family of features over one scope (host, member, group, pair, endpoint, ...)."""

    scope: str
    doc: str
    columns: Mapping[str, FeatureColumn]


@dataclass
class FeatureRows:
    """The features of one scope in one window [start_ns, end_ns).

    `keys` has one entry per row: the canonical id of the scope ("10.0.0.3", "10.0.0.1->10.0.0.2",
    "10.0.0.1:8000"). `columns` are float64 arrays of shape (rows,). `onset_ns` may give, per
    column, the event time of the first sample in the window that carried the extreme value (int64,
    shape (rows,), 0 = none); `packets` gives for a row the (tap, frame) pairs behind it.
    """

    scope: str
    keys: Sequence[str]
    columns: dict[str, Array]
    onset_ns: dict[str, Array] = field(default_factory=dict)
    frames: dict[str, Array] = field(default_factory=dict)
    """Per column an int64 array of shape (rows, 2): (tap, frame) of the extreme sample, -1 = none."""


@dataclass
class Slice:
    """All sample tables of one tick [start_ns, end_ns), rows in event-time order."""

    start_ns: int
    end_ns: int
    tables: dict[str, Table]
    directory: Directory
    last: bool = False


class Feature(Protocol):
    """A feature family: fed slices in event-time order, returns rows for the slice's window."""

    SPEC: FeatureSpec
    NEEDS: Sequence[str]
    """Names of other feature families that must be computed first."""

    def update(self, slice_: Slice, others: Mapping[str, FeatureRows]) -> FeatureRows:
        """Absorb one slice and return this scope's rows for it."""
        ...


def nan_rows(count: int) -> Array:
    """Return a float64 column of shape (count,) in which nothing is known."""
    return np.full(count, np.nan)
