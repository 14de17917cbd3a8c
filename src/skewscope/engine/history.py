"""What a run remembers for diagnosis and reports: bounded series, roles, edges and rounds."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from ipaddress import ip_address
from typing import cast

import numpy as np

from skewscope.core.directory import Directory
from skewscope.core.features import FeatureRows, Slice
from skewscope.core.report import Edge, Group, HostRole, Series
from skewscope.diagnose.context import Context, host_of
from skewscope.features.graph import GraphRows
from skewscope.features.groups import GroupRows
from skewscope.features.parts import FRAMINGS, PATTERNS, PartRows
from skewscope.features.rounds import RoundRows, Rounds

KEPT: Mapping[str, tuple[str, ...]] = {
    "endpoint": ("ttft_s", "chunk_gap_s", "chunks", "arrivals", "active_streams", "open_requests"),
    "group": ("interval_s", "slowdown_ratio", "message_max_bytes"),
    "member": ("own_s", "excess_s", "inside_s", "wait_s"),
    "link": ("delay_s", "lost"),
    "port": ("rate_bps",),
    "leg": ("zero_window_s", "lost_up", "lost_down", "rtt_s"),
}
"""Features that reports plot and impact is computed from."""

UNTAGGED_FRAMINGS = (2, 3)
"""Of messages by NCCL; groups that are not understood are named as Gloo ones, as before."""

COUNTS = ("chunks", "arrivals")
"""Those that count what happened in a window; the others are states or times."""

MAX_POINTS = 4096
MAX_SERIES = 4096
MAX_ROUNDS = 600
MAX_EDGES = 1 << 16


class _Trace:
    """A series that halves its resolution whenever it is full, so that a day fits as well as a second.

    A point stands for the last `stride` values: their sum where they are counts, else the last one.
    """

    def __init__(self, counts: bool) -> None:
        self.ts: list[int] = []
        self.values: list[float] = []
        self._counts = counts
        self._stride = 1
        self._held = 0
        self._sum = 0.0

    def add(self, ts: int, value: float) -> None:
        self._held += 1
        self._sum = self._sum + value if self._counts else value
        if self._held < self._stride:
            return
        self.ts.append(ts)
        self.values.append(self._sum)
        self._held, self._sum = 0, 0.0
        if len(self.ts) >= MAX_POINTS:
            pairs = zip(self.values[0::2], self.values[1::2], strict=True)
            self.values = [a + b if self._counts else b for a, b in pairs]
            self.ts = self.ts[1::2]
            self._stride *= 2


class History:
    """An observer of the engine."""

    def __init__(self) -> None:
        self._traces: dict[tuple[str, str, str], _Trace] = {}
        self._units: dict[tuple[str, str], str] = {}
        self._edges: dict[tuple[int, int], list[float]] = {}
        self._rounds: dict[int, deque[Rounds]] = {}
        self._early: dict[int, list[Rounds]] = {}
        self._counts: dict[int, int] = {}
        self._directory: Directory | None = None
        self._graph: GraphRows | None = None
        self._round_s: dict[int, float] = {}
        self._speaks: dict[int, str] = {}
        self.first_ns = 0
        self.last_ns = 0

    def __call__(self, slice_: Slice, rows: Mapping[str, FeatureRows]) -> None:
        """Remember what one slice showed."""
        if self._directory is None:
            self.first_ns = slice_.start_ns
        self._directory = slice_.directory
        self.last_ns = slice_.end_ns
        self._graph = cast(GraphRows, rows["host"])
        self._round_s.update(cast(GroupRows, rows["group"]).round_s)
        if "part" in rows:
            self._note_parts(cast(PartRows, rows["part"]))
        for scope, names in KEPT.items():
            got = rows.get(scope)
            if got is None:
                continue
            for name in names:
                column = got.columns.get(name)
                if column is not None:
                    self._add(scope, name, slice_.end_ns, got, column)
        self._note_edges(rows["pair"])
        self._note_rounds(cast(RoundRows, rows["round"]).rounds)

    def _note_parts(self, parts: PartRows) -> None:
        """Remember what untagged groups speak: "ring, NCCL over RoCE"."""
        for g, framing in parts.framing.items():
            if framing in UNTAGGED_FRAMINGS:
                pattern = parts.pattern.get(g, 0)
                words = [PATTERNS[pattern]] if pattern else []
                self._speaks[g] = ", ".join([*words, FRAMINGS[framing]])

    def _add(self, scope: str, name: str, ts: int, rows: FeatureRows, column: np.ndarray) -> None:
        for i in np.flatnonzero(np.isfinite(column)).tolist():
            key = (scope, rows.keys[i], name)
            trace = self._traces.get(key)
            if trace is None:
                if len(self._traces) >= MAX_SERIES:
                    continue
                trace = self._traces[key] = _Trace(name in COUNTS)
            trace.add(ts, float(column[i]))

    def _note_edges(self, pairs: FeatureRows) -> None:
        columns = pairs.columns
        for (a, b), i in getattr(pairs, "pair_of", {}).items():
            key = (min(a, b), max(a, b))
            edge = self._edges.get(key)
            if edge is None:
                if len(self._edges) >= MAX_EDGES:
                    continue
                edge = self._edges[key] = [0.0, 0.0, 0.0, 0.0]
            edge[0] += columns["bytes"][i]
            edge[1] += columns["packets"][i]
            edge[2] += columns["collective_bytes"][i]
            edge[3] += columns["http_bytes"][i]

    def _note_rounds(self, rounds: Rounds) -> None:
        if not len(rounds):
            return
        for g in np.unique(rounds.group):
            part = _of_group(rounds, int(g))
            self._counts[int(g)] = self._counts.get(int(g), 0) + len(part)
            self._rounds.setdefault(int(g), deque(maxlen=MAX_ROUNDS)).append(part)
            early = self._early.setdefault(int(g), [])
            if sum(map(len, early)) < 64:
                early.append(part)

    def rounds_near(self, group: int) -> list[Rounds]:
        """Return the remembered rounds of a group: its first ones and its latest ones."""
        late = list(self._rounds.get(group, ()))
        return [r for r in self._early.get(group, []) if not any(r is x for x in late)] + late

    def series(self, units: Mapping[tuple[str, str], str]) -> list[Series]:
        """Return the series; `units` maps (scope, feature) to its unit."""
        return [
            Series(scope, key, name, units.get((scope, name), "1"), trace.ts, list(trace.values))
            for (scope, key, name), trace in sorted(self._traces.items())
        ]

    def groups(self) -> list[Group]:
        """Return the collective groups."""
        graph, directory = self._graph, self._directory
        if graph is None or directory is None:
            return []
        names = directory.addresses
        return [
            Group(
                names[g],
                sorted((names[m] for m in members), key=_place),
                self._speaks.get(g, "gloo"),
                self._round_s.get(g),
                self._counts.get(g, 0),
            )
            for g, members in sorted(graph.groups.items())
        ]

    def hosts(self) -> list[HostRole]:
        """Return every host with its learned roles and its own tap."""
        graph, directory = self._graph, self._directory
        if graph is None or directory is None:
            return []
        client = graph.is_client()
        out = []
        for a in sorted({h for pair in self._edges for h in pair}):
            roles = []
            if graph.member[a] >= 0:
                roles.append("group member")
            if graph.serves[a]:
                roles.append("gateway" if graph.asks[a] and graph.member[a] < 0 else "engine")
            if client[a]:
                roles.append("client")
            tap = int(graph.own_tap[a])
            path = directory.taps[tap].path if tap >= 0 else ""
            out.append(HostRole(directory.addresses[a], _stem(path), roles or ["other"], path))
        return _unambiguous(out)

    def edges(self) -> list[Edge]:
        """Return who talked to whom, and what carried most of the bytes."""
        if self._directory is None:
            return []
        names = self._directory.addresses
        out = []
        for (a, b), (size, packets, collective, http) in sorted(self._edges.items()):
            kind = "collective" if collective * 2 > size else "http" if http * 2 > size else "other"
            out.append(Edge(names[a], names[b], kind, int(size), int(packets)))
        return out

    def context(self, units: Mapping[tuple[str, str], str]) -> Context:
        """Return what diagnosis needs."""
        hosts, groups, series = self.hosts(), self.groups(), self.series(units)
        member = {m: g.id for g in groups for m in g.members}
        endpoints = {s.key for s in series if s.scope == "endpoint"}
        return Context(
            groups={g.id: g.members for g in groups},
            clients=frozenset(h.address for h in hosts if "client" in h.roles),
            roles={h.address: h.roles for h in hosts},
            names={h.address: h.name for h in hosts if h.name},
            links={(e.a, e.b): e.bytes_total for e in self.edges()},
            endpoint_groups={e: member[host_of(e)] for e in endpoints if host_of(e) in member},
            series=series,
            first_ns=self.first_ns,
            last_ns=self.last_ns,
        )


def _of_group(rounds: Rounds, g: int) -> Rounds:
    rows = rounds.group == g
    columns = {n: getattr(rounds, n)[rows] for n in rounds.__dataclass_fields__ if n != "start"}
    key = columns["key"]
    fresh = np.ones(len(key), dtype=np.bool_)
    fresh[1:] = key[1:] != key[:-1]
    return Rounds(start=np.flatnonzero(fresh), **columns)


def _place(address: str) -> tuple[int, int]:
    """Order addresses as numbers; ids, and so the members of a group, come in the order of sight."""
    number = ip_address(address)
    return number.version, int(number)


def _stem(path: str) -> str:
    name = path.rsplit("/", 1)[-1]
    return name.split(".", 1)[0]


def _unambiguous(hosts: list[HostRole]) -> list[HostRole]:
    """A tap between two hosts names neither of them."""
    count: dict[str, int] = {}
    for h in hosts:
        count[h.name] = count.get(h.name, 0) + 1
    for h in hosts:
        if count[h.name] > 1:
            h.name = ""
    return hosts
