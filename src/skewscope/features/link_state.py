"""What is remembered of pairs of hosts and their links, from which features/links.py accuses."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import median

import numpy as np

from skewscope.core.tables import Array

MAX_HOSTS = 4096

TOLD_NS = 3_000_000_000
"""How long losses are described after the last one."""

RECENT = 10
"""Slices (1 s) over which losses of a pair are counted together: retransmission timers are 0.2 s."""


@dataclass
class Pair:
    """What is remembered of a directed pair."""

    counts: deque[tuple[int, float]] = field(default_factory=deque)
    """(lost copies, segments) of the last RECENT windows in which the pair was seen."""
    lost: int = 0
    segments: float = 0.0
    """Their sums."""
    excess_s: float = float("nan")
    load_known: int = -1
    first_ns: int = 0
    always: bool = False
    """Slow against the other pairs ever since it was first seen."""
    slow: bool = False
    slow_at: int = -(10**9)
    witness: bool = False
    """Delay is known from tap to tap, or within a group: it may accuse a link, not only clear it."""
    seen: int = -(10**9)

    def count(self, lost: int, segments: float) -> None:
        """Take the counts of one window."""
        self.counts.append((lost, segments))
        self.lost, self.segments = self.lost + lost, self.segments + segments
        if len(self.counts) > RECENT:
            old_lost, old_segments = self.counts.popleft()
            self.lost, self.segments = self.lost - old_lost, self.segments - old_segments


@dataclass
class Active:
    """The pairs that were seen lately, by host, and what is asked of all of them together."""

    pairs: dict[tuple[int, int], Pair]
    slow: set[tuple[int, int]]
    of: Mapping[int, list[tuple[int, int]]]
    """Pairs that touch a host."""
    accused: set[tuple[int, int]]
    """The slow ones of which the delay is witnessed, without regard to direction."""
    lost: int
    """Copies lost on all of them."""
    times: list[int]
    """When any copy remembered was lost, ascending; none while no losses are described."""


@dataclass
class Episode:
    """Lost copies of one host since its link last looked whole."""

    since_ns: int = 0
    smallest: float = float("inf")
    lost: int = 0
    last_ns: int = 0


@dataclass
class Gap:
    """A time in which nothing was seen to cross one host's link."""

    start_ns: int
    end_ns: int
    lost_in: bool = False
    lost_out: bool = False
    lost: int = 0
    others_lost: int = 0
    smallest: float = float("inf")
    told: bool = False


def load_class(sent_bytes: float) -> int:
    """Return the class of a pair's load in a window: powers of four of its bytes."""
    return int(sent_bytes).bit_length() // 2


@lru_cache(maxsize=1)
def by_host(pairs: tuple[tuple[int, int], ...]) -> Mapping[int, list[tuple[int, int]]]:
    """Return the pairs that touch each host. Kept, for from slice to slice the pairs are mostly the same."""
    out: dict[int, list[tuple[int, int]]] = {}
    for key in pairs:
        for h in key:
            out.setdefault(h, []).append(key)
    return out


def middle(values: list[float]) -> float:
    """Return the median, NaN of nothing."""
    return float(median(values)) if values else float("nan")


def changes(values: Array) -> Array:
    """Return where a value differs from the one before it: bool (n,), True at the first."""
    changed = np.ones(len(values), dtype=np.bool_)
    changed[1:] = values[1:] != values[:-1]
    return changed


def short(ids: Array) -> Array:
    """Return ids in 16 bits where they fit: such are sorted in one pass over them."""
    return ids.astype(np.uint16) if len(ids) and ids.max() < 1 << 16 else ids


def latest(host: Array, size: Array, times: Array) -> Iterable[tuple[int, int, int]]:
    """Return (host, size, time) of the last copy of each size at each host.

    All int64 (n,), by host and then by time (ns); sizes are of 32 bits.
    """
    last = len(host) - 1 - np.unique((host << 32 | size)[::-1], return_index=True)[1]
    return zip(host[last].tolist(), size[last].tolist(), times[last].tolist(), strict=True)
