"""What a run remembers for diagnosis and reports: bounded series, roles, edges and rounds."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from ipaddress import ip_address
from typing import NamedTuple, cast

import numpy as np

from skewscope.core.directory import Directory
from skewscope.core.features import FeatureRows, Slice
from skewscope.core.report import Edge, Group, HostRole, Series
from skewscope.core.tables import Array
from skewscope.diagnose.context import Context, host_of
from skewscope.engine.traces import Traces
from skewscope.features.graph import GraphRows
from skewscope.features.groups import GroupRows
from skewscope.features.parts import FRAMINGS, PATTERNS, PartRows
from skewscope.features.rounds import RoundRows, Rounds
from skewscope.features.transport import PairRows

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

CARRIED = ("bytes", "packets", "collective_bytes", "http_bytes")
"""What is added up per pair of hosts."""

_LOW = 0xFFFFFFFF
MAX_POINTS = 4096
MAX_SERIES = 4096
POINTS = 1 << 21
"""Points of all series together (32 MiB): many series keep fewer each."""

MIN_POINTS = 256
COMPACT = 64
"""Windows of edges that are added up at a time."""

MAX_ROUNDS = 600
"""Latest windows of rounds kept of a group."""

MIN_ROUNDS, ALL_ROUNDS = 64, 1 << 15
"""... and the fewest, where all groups together have more than ALL_ROUNDS (about 64 MiB)."""

MAX_EDGES = 1 << 16


_ROUND_COLUMNS = tuple(name for name in Rounds.__dataclass_fields__ if name != "start")


class _Part(NamedTuple):
    """The rounds of one group in one window: int64 (columns of Rounds, n), first row of each round."""

    cells: Array
    start: Array


class History:
    """An observer of the engine."""

    def __init__(self) -> None:
        self._traces = {(scope, n): Traces(n in COUNTS) for scope, names in KEPT.items() for n in names}
        self._edges = np.zeros((0, 1 + len(CARRIED)), dtype=np.int64)
        self._fresh: list[Array] = []
        self._rounds: dict[int, deque[_Part]] = {}
        self._early: dict[int, list[_Part]] = {}
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
        for (scope, name), traces in self._traces.items():
            got = rows.get(scope)
            column = None if got is None else got.columns.get(name)
            if got is not None and column is not None:
                self._add(traces, slice_.end_ns, got, column)
        self._note_edges(cast(PairRows, rows["pair"]))
        self._note_rounds(cast(RoundRows, rows["round"]).rounds)

    def _add(self, traces: Traces, ts: int, rows: FeatureRows, column: Array) -> None:
        total = sum(map(len, self._traces.values()))
        limit = min(MAX_POINTS, max(MIN_POINTS, POINTS // max(total, 1)))
        traces.add(ts, rows.keys, column, len(traces) + MAX_SERIES - total, limit)

    def _note_parts(self, parts: PartRows) -> None:
        """Remember what untagged groups speak: "ring, NCCL over RoCE"."""
        for g, framing in parts.framing.items():
            if framing in UNTAGGED_FRAMINGS:
                pattern = parts.pattern.get(g, 0)
                words = [PATTERNS[pattern]] if pattern else []
                self._speaks[g] = ", ".join([*words, FRAMINGS[framing]])

    def _note_edges(self, pairs: PairRows) -> None:
        if not pairs.pair_of:
            return
        ends = np.array(list(pairs.pair_of), dtype=np.int64)
        at = list(pairs.pair_of.values())
        made = np.empty((len(ends), 1 + len(CARRIED)), dtype=np.int64)
        made[:, 0] = (ends.min(axis=1) << 32) + ends.max(axis=1)
        for i, name in enumerate(CARRIED):
            made[:, 1 + i] = pairs.columns[name][at]
        self._fresh.append(made)
        if len(self._fresh) >= COMPACT:
            self._sum_edges()

    def _sum_edges(self) -> Array:
        """Add up what was noted of each pair of hosts; return int64 (edges, 1 + CARRIED), by pair.

        Beyond MAX_EDGES new pairs are left out.
        """
        if self._fresh:
            known = self._edges[:, 0]
            rows = np.concatenate([self._edges, *self._fresh])
            keys, at = np.unique(rows[:, 0], return_inverse=True)
            sums = np.zeros((len(keys), rows.shape[1]), dtype=np.int64)
            np.add.at(sums, at, rows)
            sums[:, 0] = keys
            if len(sums) > MAX_EDGES:
                old = np.isin(keys, known)
                room = np.flatnonzero(~old)[: MAX_EDGES - len(known)]
                old[room] = True
                sums = sums[old]
            self._edges, self._fresh = sums, []
        return self._edges

    def _note_rounds(self, rounds: Rounds) -> None:
        if not len(rounds):
            return
        groups, cuts = np.unique(rounds.group, return_index=True)  # rows are sorted by group
        ends = np.append(cuts[1:], len(rounds.group))
        cells = np.stack([getattr(rounds, name) for name in _ROUND_COLUMNS])
        firsts = np.searchsorted(rounds.start, np.append(cuts, len(rounds.group))).tolist()
        for i, (g, lo, hi) in enumerate(zip(groups.tolist(), cuts.tolist(), ends.tolist(), strict=True)):
            # Copied, for a view would keep the rows of all groups.
            part = _Part(cells[:, lo:hi].copy(), rounds.start[firsts[i] : firsts[i + 1]] - lo)
            self._counts[g] = self._counts.get(g, 0) + len(part.start)
            late = self._rounds.setdefault(g, deque())
            late.append(part)
            limit = min(MAX_ROUNDS, max(MIN_ROUNDS, ALL_ROUNDS // len(self._rounds)))
            while len(late) > limit:
                late.popleft()
            early = self._early.setdefault(g, [])
            if sum(len(known.start) for known in early) < 64:
                early.append(part)

    def rounds_near(self, group: int) -> list[Rounds]:
        """Return the remembered rounds of a group: its first ones and its latest ones."""
        late = list(self._rounds.get(group, ()))
        early = [r for r in self._early.get(group, []) if not any(r is x for x in late)]
        return [
            Rounds(start=part.start, **dict(zip(_ROUND_COLUMNS, part.cells, strict=True)))
            for part in early + late
        ]

    def series(self, units: Mapping[tuple[str, str], str]) -> list[Series]:
        """Return the series; `units` maps (scope, feature) to its unit."""
        found = [
            Series(scope, key, name, units.get((scope, name), "1"), ts, list(values))
            for (scope, name), traces in self._traces.items()
            for key, ts, values in traces.series()
            if ts
        ]
        return sorted(found, key=lambda s: (s.scope, s.key, s.name))

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
        pairs = self._sum_edges()[:, 0]
        for a in np.unique(np.concatenate([pairs >> 32, pairs & _LOW])).tolist():
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
        for pair, size, packets, collective, http in self._sum_edges().tolist():
            kind = "collective" if collective * 2 > size else "http" if http * 2 > size else "other"
            out.append(Edge(names[pair >> 32], names[pair & _LOW], kind, size, packets))
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
