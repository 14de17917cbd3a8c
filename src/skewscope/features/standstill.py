"""A group that stopped while work waits: for how long, and which member stopped first."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import cast

import numpy as np

from skewscope.core.features import FeatureColumn, FeatureRows, FeatureSpec, Slice, nan_rows
from skewscope.core.tables import Array
from skewscope.features.graph import GraphRows
from skewscope.features.groups import GroupRows
from skewscope.features.rounds import RoundRows

ENDED_NS = 2_000_000_000
"""Ends of connections within this time of the group's last message belong to its stop: the others
close 0.2-0.6 s after the first (docs/testbed.md 7), engines wait up to a second."""

HISTORY = 128
"""Windows for which the work in hand is remembered: a stop is judged within seconds."""


class Standstill:
    """Per member of a group: silence of the group, work that waits, who stopped or left first."""

    SPEC = FeatureSpec(
        "standstill",
        "a member of a group, with respect to the group's progress",
        {
            "silence_s": FeatureColumn("s", "time since the last message and the endpoints' last piece out"),
            "silence_ratio": FeatureColumn("1", "the same over the longest usual interval between rounds"),
            "demand": FeatureColumn(
                "1", "requests and streams in hand at the group's endpoints, now or when it stopped"
            ),
            "left": FeatureColumn("1", "collective connections that it ended or reset since the stop"),
            "left_first": FeatureColumn("1", "1 where it was the first of the group to do so"),
            "stopped_first": FeatureColumn("1", "1 where its last message out is the oldest of the group"),
            "behind_s": FeatureColumn("s", "how long before the next member it fell silent"),
        },
    )
    NEEDS: Sequence[str] = ("host", "pair", "round", "group", "endpoint")

    def __init__(self) -> None:
        self._left: dict[int, tuple[int, int]] = {}
        self._seen_left: dict[tuple[int, int], int] = {}
        self._piece_ns: dict[str, int] = {}
        self._in_hand: dict[int, deque[tuple[int, float]]] = {}
        self._now_ns = 0

    def update(self, slice_: Slice, others: Mapping[str, FeatureRows]) -> FeatureRows:
        """Absorb one slice."""
        graph = cast(GraphRows, others["host"])
        groups = cast(GroupRows, others["group"])
        rounds = cast(RoundRows, others["round"])
        self._note_left(slice_, graph)
        self._now_ns = slice_.end_ns
        members = [m for g in sorted(graph.groups) for m in graph.groups[g]]
        names = slice_.directory.addresses
        columns = {name: nan_rows(len(members)) for name in self.SPEC.columns}
        onset = {"silence_s": np.zeros(len(members), dtype=np.int64)}
        rows = FeatureRows("standstill", [names[m] for m in members], columns, onset)
        demand = _demand(others["endpoint"])
        for host in _sending(others["endpoint"]):
            self._piece_ns[host] = slice_.end_ns
        at = {key: i for i, key in enumerate(groups.keys)}
        spot = {m: i for i, m in enumerate(members)}
        for g in graph.groups:
            team = graph.groups[g]
            spots = [spot[m] for m in team]
            i = at[names[g]]
            last = int(groups.onset_ns["silence_ratio"][i])
            # While pieces still leave, output drains: the front end is late, the group is done.
            piece = max((self._piece_ns.get(names[m], 0) for m in team), default=0)
            silence = min(groups.columns["silence_s"][i], (slice_.end_ns - piece) / 1e9)
            columns["silence_s"][spots] = silence
            columns["silence_ratio"][spots] = silence / groups.columns["longest_ref_s"][i]
            onset["silence_s"][spots] = last
            self._rank(columns, team, spots, rounds, last)
            cut = columns["left"][spots].sum() > 0
            columns["demand"][spots] = self._hand(g, sum(demand.get(names[m], 0.0) for m in team), last, cut)
        return rows

    def _hand(self, group: int, now: float, last_ns: int, cut: bool) -> float:
        """Return the work in hand now or, where connections were cut with the group, when it stopped."""
        seen = self._in_hand.setdefault(group, deque(maxlen=HISTORY))
        seen.append((self._now_ns, now))
        before = [amount for ts, amount in seen if ts <= last_ns]
        return max(now, before[-1]) if cut and before else now

    def _note_left(self, slice_: Slice, graph: GraphRows) -> None:
        p = slice_.tables["packets"]
        ends = (p["flags"] & 5 > 0) & (p["proto"] == 6)
        flow, way = p["flow"].astype(np.int64), p["way"].astype(np.int64)
        ends &= graph.collective[flow]
        for row in np.flatnonzero(ends):
            host, peer, ts = int(p["src"][row]), int(p["dst"][row]), int(p["ts_ns"][row])
            if graph.vantage[flow[row], way[row]] == p["tap"][row]:
                first, count = self._left.get(host, (ts, 0))
                self._left[host] = (first, count + 1)
            if graph.vantage[flow[row], 1 - way[row]] == p["tap"][row]:
                self._seen_left.setdefault((peer, host), ts)

    def _left_first(self, left: dict[int, tuple[int, int]]) -> int | None:
        """Return who left before the others did, each as judged at its own tap: no common clock needed."""

        def witnesses(m: int) -> int:
            told = [(o, self._seen_left.get((o, m))) for o in left if o != m]
            return sum(1 for o, ts in told if ts is not None and ts < left[o][0])

        return max(left, key=lambda m: (witnesses(m), -left[m][0]), default=None)

    def _rank(
        self, columns: dict[str, Array], team: list[int], spots: list[int], rounds: RoundRows, last: int
    ) -> None:
        left = {m: self._left[m] for m in team if m in self._left and self._left[m][0] > last - ENDED_NS}
        for m in team:  # a group that works again after a restart has nobody missing
            if m in self._left and rounds.last_out.get(m, 0) > self._left[m][0] + ENDED_NS:
                del self._left[m]
                self._seen_left = {k: ts for k, ts in self._seen_left.items() if k[1] != m}
        first = self._left_first(left)
        out = sorted((rounds.last_out.get(m, 0), m) for m in team if rounds.last_out.get(m, 0) > 0)
        for m, i in zip(team, spots, strict=True):
            columns["left"][i] = left[m][1] if m in left else 0.0
            columns["left_first"][i] = float(m == first)
            columns["stopped_first"][i] = float(bool(out) and out[0][1] == m)
            columns["behind_s"][i] = (out[1][0] - out[0][0]) / 1e9 if len(out) > 1 and out[0][1] == m else 0.0


def _demand(endpoints: FeatureRows) -> dict[str, float]:
    """Return requests and streams in hand per host address."""
    out: dict[str, float] = {}
    waiting = np.nan_to_num(endpoints.columns["open_requests"] + endpoints.columns["active_streams"])
    for key, count in zip(endpoints.keys, waiting.tolist(), strict=True):
        host = key.rsplit(":", 1)[0].strip("[]")
        out[host] = out.get(host, 0.0) + count
    return out


def _sending(endpoints: FeatureRows) -> set[str]:
    """Return the hosts whose endpoints sent a piece in the window."""
    chunks = endpoints.columns["chunks"]
    return {k.rsplit(":", 1)[0].strip("[]") for i, k in enumerate(endpoints.keys) if chunks[i] > 0}


FEATURE = Standstill
