"""Pace of a collective group: round intervals, their reference, message size, silence."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from statistics import median
from typing import cast

import numpy as np

from skewscope.core.features import FeatureColumn, FeatureRows, FeatureSpec, Slice, nan_rows
from skewscope.core.tables import Array
from skewscope.features.graph import GraphRows
from skewscope.features.reference import LEARN, Reference
from skewscope.features.rounds import RoundRows, Rounds
from skewscope.features.untagged import UNTAGGED

IDLE_RATIO = 20.0
"""An interval this many times the longest usual one is a stop or an idle time, not a slow round."""

FIRST = 16
"""Latest intervals of any kind that stand in for the usual ones until those are known."""


@dataclass
class GroupRows(FeatureRows):
    """Rows per group; pace by group id for features that normalise by it."""

    round_s: dict[int, float] = field(default_factory=dict)
    """Group id -> usual time per round (s): one step's time over its rounds."""
    longest_s: dict[int, float] = field(default_factory=dict)
    """Group id -> longest usual interval between rounds (s)."""
    settled: set[int] = field(default_factory=set)
    """Groups whose pace is known by kind of round; that of others is a first guess, enough for delays."""
    slowdown: dict[int, float] = field(default_factory=dict)
    """Group id -> slowdown_ratio of the last window in which rounds closed."""


class Groups:
    """Per group and window: how fast it steps against how fast it usually steps."""

    SPEC = FeatureSpec(
        "group",
        "a collective group as a whole",
        {
            "rounds": FeatureColumn("1", "rounds that began in the window"),
            "interval_s": FeatureColumn("s", "mean time from round to round"),
            "interval_ref_s": FeatureColumn("s", "its reference, by kind of round"),
            "slowdown_ratio": FeatureColumn(
                "1", "time of the rounds over the time that such rounds usually take"
            ),
            "longest_ref_s": FeatureColumn("s", "longest usual interval"),
            "message_bytes": FeatureColumn("bytes", "median largest message of the rounds"),
            "message_max_bytes": FeatureColumn("bytes", "largest message of the rounds"),
            "message_ref_bytes": FeatureColumn("bytes", "median message so far (decode, as most rounds are)"),
            "silence_s": FeatureColumn("s", "time since the group's last message"),
            "silence_ratio": FeatureColumn("1", "the same over the longest usual interval"),
            "members": FeatureColumn("1", "members of the group"),
        },
    )
    NEEDS: Sequence[str] = ("host", "round")

    def __init__(self) -> None:
        self._intervals = Reference()
        self._kinds: dict[int, dict[tuple[int, int], int]] = {}
        self._last_entry: dict[int, tuple[int, tuple[int, int]]] = {}
        self._first: dict[int, deque[float]] = {}
        self._sizes = Reference()
        self._slowdown: dict[int, float] = {}
        self._last_message: dict[int, int] = {}

    def update(self, slice_: Slice, others: Mapping[str, FeatureRows]) -> GroupRows:
        """Absorb one slice."""
        graph = cast(GraphRows, others["host"])
        rounds = cast(RoundRows, others["round"])
        ids = sorted(graph.groups)
        columns = {name: nan_rows(len(ids)) for name in self.SPEC.columns}
        onset = {"silence_ratio": np.zeros(len(ids), dtype=np.int64)}
        result = GroupRows("group", [slice_.directory.addresses[g] for g in ids], columns, onset)
        heads = _heads(rounds.rounds)
        for i, g in enumerate(ids):
            self._pace(i, g, heads.get(g, []), columns)
            members = graph.groups[g]
            last = max((rounds.last_out.get(m, 0) for m in members), default=0)
            round_s, longest = self._usual(g)
            columns["members"][i] = len(members)
            columns["longest_ref_s"][i] = longest
            if last:
                columns["silence_s"][i] = max(0, slice_.end_ns - last) / 1e9
                columns["silence_ratio"][i] = columns["silence_s"][i] / longest
                onset["silence_ratio"][i] = last
            if np.isfinite(columns["slowdown_ratio"][i]):
                self._slowdown[g] = float(columns["slowdown_ratio"][i])
            if np.isfinite(round_s):
                result.round_s[g] = round_s
                result.longest_s[g] = longest
                if any(np.isfinite(self._intervals.get((g, kind))[0]) for kind in self._kinds.get(g, ())):
                    result.settled.add(g)
        result.slowdown.update(self._slowdown)
        return result

    def _pace(
        self, i: int, g: int, heads: list[tuple[int, tuple[int, int], int]], columns: dict[str, Array]
    ) -> None:
        columns["rounds"][i] = len(heads)
        if not heads:
            return
        took = usual = 0.0
        counted = 0
        for entry, kind, _ in heads:
            before = self._last_entry.get(g)
            if before is not None and entry <= before[0]:
                continue  # a round that some member reported late
            self._last_entry[g] = (entry, kind)
            if before is None:
                continue
            interval = (entry - before[0]) / 1e9
            key = (g, kind)
            reference, _ = self._intervals.get(key)
            if isfinite(reference) and interval < IDLE_RATIO * self._usual(g)[1]:
                took, usual, counted = took + interval, usual + reference, counted + 1
            first = self._first.setdefault(g, deque(maxlen=FIRST))
            first.append(interval)
            fresh = [interval]
            if kind[0] == UNTAGGED and not isfinite(reference):
                # Where steps are still being told apart, the first few intervals are of any length.
                fresh = list(first) if len(first) == FIRST else []
            self._intervals.learn(key, fresh, 0.05 * reference if reference > 0 else interval)
            self._kinds.setdefault(g, {})[kind] = self._kinds.get(g, {}).get(kind, 0) + 1
        if counted:
            columns["interval_s"][i], columns["interval_ref_s"][i] = took / counted, usual / counted
            columns["slowdown_ratio"][i] = took / usual
        sizes = [float(largest) for _, _, largest in heads]
        columns["message_bytes"][i], columns["message_max_bytes"][i] = median(sizes), max(sizes)
        self._sizes.learn(g, sizes, float("inf"))
        columns["message_ref_bytes"][i] = self._sizes.get(g)[0]

    def _usual(self, g: int) -> tuple[float, float]:
        """Return the usual time per round and the longest usual interval (s), NaN while unknown."""
        counts = self._kinds.get(g, {})
        known = [(n, self._intervals.get((g, kind))[0]) for kind, n in counts.items()]
        known = [(n, value) for n, value in known if isfinite(value)]
        total = sum(n for n, _ in known)
        if not total:
            # A slow group has shown no kind of round three times yet. Both are estimated high: too long
            # a round hides a fault for a moment, too short a one makes one up.
            first = self._first.get(g, ())
            return (sum(first) / len(first), max(first)) if len(first) >= LEARN else (np.nan, np.nan)
        return sum(n * value for n, value in known) / total, max(v for n, v in known if n >= 0.05 * total)


def _heads(r: Rounds) -> dict[int, list[tuple[int, tuple[int, int], int]]]:
    """Return per group its rounds in order: entry of the first member (ns), kind, largest message."""
    at = r.start
    kinds = zip((r.key[at] >> 32).tolist(), (r.previous[at] >> 32).tolist(), strict=True)
    out: dict[int, list[tuple[int, tuple[int, int], int]]] = {}
    rows = zip(r.group[at].tolist(), r.entry[at].tolist(), kinds, r.largest[at].tolist(), strict=True)
    for g, entry, kind, largest in rows:
        out.setdefault(g, []).append((entry, kind, largest))
    return out


FEATURE = Groups
