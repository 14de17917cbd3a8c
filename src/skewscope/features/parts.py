"""How a group communicates, and each member's part in it: ring, tree, chain of stages, all to all."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from skewscope.core.features import FeatureColumn, FeatureRows, FeatureSpec, Slice, nan_rows
from skewscope.core.tables import Array, Table
from skewscope.features.graph import NCCL_ROCE, NCCL_SOCKET, TAGGED, GraphRows, is_collective

UNKNOWN, RING, TREE, CHAIN, ALL_TO_ALL = range(5)
PATTERNS = ("unknown", "ring", "tree", "chain", "all to all")
FRAMINGS = {TAGGED: "gloo", NCCL_SOCKET: "NCCL over sockets", NCCL_ROCE: "NCCL over RoCE"}

HEAVY_SHARE = 0.1
"""An edge counts if it carries at least this share of the heaviest one's bytes: broadcasts of the tokens
of a step and other small talk do not."""

DATA_KINDS = 1
"""Kinds up to this one carry data; the others announce readiness."""

SETTLED = 3
"""Windows with data in a row: in its first window a ring may lack an edge."""

WAITING = 4096
"""Messages remembered between a stage's input and its output."""


@dataclass
class PartRows(FeatureRows):
    """Rows per member, and per group id the pattern (index of PATTERNS) and the framing of its bytes."""

    pattern: dict[int, int] = field(default_factory=dict)
    framing: dict[int, int] = field(default_factory=dict)
    stages: dict[int, list[int]] = field(default_factory=dict)
    """Group id -> members of a chain in its order, that looked like one for long enough."""


class Parts:
    """Learns the graph of data messages of each group and what each member does in it."""

    SPEC = FeatureSpec(
        "part",
        "a member's part in its group's communication",
        {
            "pattern": FeatureColumn("1", "1 ring, 2 tree, 3 chain, 4 all to all, 0 not known"),
            "sent_bytes": FeatureColumn("bytes", "data that it sent to other members in the window"),
            "received_bytes": FeatureColumn("bytes", "data that it received from them"),
            "received_share": FeatureColumn("1", "the same over all that the group's members received"),
            "received_ratio": FeatureColumn("1", "the same over the mean of its members"),
            "stage_s": FeatureColumn(
                "s", "chain: median time from a message in, or the last one out, to its message out"
            ),
        },
    )
    NEEDS: Sequence[str] = ("host",)

    def __init__(self) -> None:
        self._edges: dict[int, dict[tuple[int, int], float]] = {}
        self._framing: dict[int, int] = {}
        self._waiting: dict[int, deque[int]] = {}
        self._last_out: dict[int, int] = {}
        self._looked: dict[int, int] = {}
        self._shapes: dict[int, tuple[set[tuple[int, int]], list[int], int]] = {}

    def update(self, slice_: Slice, others: Mapping[str, FeatureRows]) -> PartRows:
        """Absorb one slice."""
        graph = cast(GraphRows, others["host"])
        members = [m for g in sorted(graph.groups) for m in graph.groups[g]]
        columns = {name: nan_rows(len(members)) for name in self.SPEC.columns}
        data = _data(slice_.tables["messages"], graph)
        self._learn(data, graph)
        pattern = {g: self._seen(self._pattern(g, graph.groups[g]), g, graph) for g in graph.groups}
        at = {m: i for i, m in enumerate(members)}
        sent, received = _volumes(data, graph, members)
        columns["sent_bytes"][:], columns["received_bytes"][:] = sent, received
        for g, team in graph.groups.items():
            rows = [at[m] for m in team]
            columns["pattern"][rows] = pattern[g]
            total = received[rows].sum()
            if total > 0:
                columns["received_share"][rows] = received[rows] / total
                columns["received_ratio"][rows] = received[rows] / (total / len(rows))
            if pattern[g] == CHAIN:
                for m, own in self._stages(data, graph, team).items():
                    columns["stage_s"][at[m]] = np.median(own) / 1e9
        stages = self._settled(pattern, {int(g) for g in np.unique(graph.member[data["src"]])}, graph)
        keys = [slice_.directory.addresses[m] for m in members]
        return PartRows("part", keys, columns, pattern=pattern, framing=dict(self._framing), stages=stages)

    def _settled(
        self, pattern: Mapping[int, int], active: set[int], graph: GraphRows
    ) -> dict[int, list[int]]:
        """Return the stages of the groups that are chains for good; active: those with data now."""
        found = {}
        for g, shape in pattern.items():
            self._looked[g] = self._looked.get(g, 0) + (g in active) if shape == CHAIN else 0
            if self._looked[g] >= SETTLED:
                found[g] = _in_order(self._shapes[g][0], graph.groups[g])
        return found

    def _learn(self, data: Table, graph: GraphRows) -> None:
        """Add up bytes per edge, as one end's vantage shows them."""
        flow, way = data["flow"].astype(np.int64), data["way"].astype(np.int64)
        once = data.take(graph.vantage[flow, way] == data["tap"])
        ends = once["src"].astype(np.int64) << 40 | once["dst"].astype(np.int64) << 8
        # Ids of addresses have 21 bits (wire.intern), framings eight.
        unique, back = np.unique(ends | once["framing"], return_inverse=True)
        size = np.bincount(back, once["nbytes"].astype(np.float64), minlength=len(unique))
        for edge, nbytes in zip(unique.tolist(), size.tolist(), strict=True):
            src, dst, framing = edge >> 40, edge >> 8 & 0xFFFFFFFF, edge & 0xFF
            g = int(graph.member[src])
            edges = self._edges.setdefault(g, {})
            edges[src, dst] = edges.get((src, dst), 0.0) + nbytes
            self._framing[g] = framing

    def _pattern(self, g: int, team: Sequence[int]) -> int:
        """Return the pattern of a group, worked out anew where its heavy edges or its members changed."""
        heavy, members = _heavy(self._edges.get(g, {})), list(team)
        known = self._shapes.get(g)
        if known is None or known[0] != heavy or known[1] != members:
            known = self._shapes[g] = (heavy, members, _pattern(heavy, members))
        return known[2]

    def _seen(self, shape: int, g: int, graph: GraphRows) -> int:
        """Return the pattern where the taps tell it: a part of a ring looks like a chain.

        Both ends of a chain must be seen to have no more neighbours, at taps that would show them.
        """
        if shape != CHAIN:
            return shape
        order = _in_order(self._shapes[g][0], graph.groups[g])
        return CHAIN if (graph.judged_at[[order[0], order[-1]]] >= 0).all() else UNKNOWN

    def _stages(self, data: Table, graph: GraphRows, team: Sequence[int]) -> dict[int, list[int]]:
        """Return per member of a chain the times (ns) from its input, or its last output, to its output."""
        flow, way = data["flow"].astype(np.int64), data["way"].astype(np.int64)
        out, into = graph.vantage[flow, way] == data["tap"], graph.vantage[flow, 1 - way] == data["tap"]
        end = np.maximum(data["ts_ns"], data["end_ns"])
        inner = np.isin(data["src"], team)
        events = [(int(end[i]), 0, int(data["dst"][i])) for i in np.flatnonzero(into & inner)]
        events += [(int(data["ts_ns"][i]), 1, int(data["src"][i])) for i in np.flatnonzero(out & inner)]
        found: dict[int, list[int]] = {}
        for ts, leaves, member in sorted(events):
            waiting = self._waiting.setdefault(member, deque(maxlen=WAITING))
            if not leaves:
                waiting.append(ts)
                continue
            if waiting:
                since = max(waiting.popleft(), self._last_out.get(member, 0))
                found.setdefault(member, []).append(ts - since)
            self._last_out[member] = ts
        return found


def _data(messages: Table, graph: GraphRows) -> Table:
    """Return the rows that carry data between members of one group."""
    m = messages.take(is_collective(messages) & (messages["kind"] <= DATA_KINDS) & (messages["flow"] > 0))
    group = graph.member[m["src"]]
    return m.take((group >= 0) & (group == graph.member[m["dst"]]))


def _volumes(data: Table, graph: GraphRows, members: Sequence[int]) -> tuple[Array, Array]:
    """Return the bytes that each member sent and received in the window, as its own tap shows them."""
    flow, way, tap = data["flow"].astype(np.int64), data["way"].astype(np.int64), data["tap"]
    size = data["nbytes"].astype(np.float64)
    sums = []
    for end, side in (("src", way), ("dst", 1 - way)):
        here = graph.vantage[flow, side] == tap
        per_host = np.bincount(data[end][here], size[here], minlength=len(graph.member))
        sums.append(per_host[np.array(members, dtype=np.int64)])
    return sums[0], sums[1]


def _heavy(edges: Mapping[tuple[int, int], float]) -> set[tuple[int, int]]:
    """Return the directed edges that count, of bytes per edge."""
    least = HEAVY_SHARE * max(edges.values(), default=0.0)
    return {edge for edge, size in edges.items() if size >= least and edge[0] != edge[1]}


def _pattern(heavy: set[tuple[int, int]], members: Sequence[int]) -> int:
    """Tell the pattern of a group from its heavy edges."""
    n = len(members)
    if not heavy or n < 2:
        return UNKNOWN
    out = {m: {b for a, b in heavy if a == m} for m in members}
    into = {m: {a for a, b in heavy if b == m} for m in members}
    links = {(min(e), max(e)) for e in heavy}
    if n >= 3 and len(heavy) == n * (n - 1):
        # Of three members a ring in both directions is all to all as well.
        return RING if n == 3 else ALL_TO_ALL
    degrees = [len(out[m] | into[m]) for m in members]
    if n >= 3 and all(d == 2 for d in degrees) and len(links) == n and _reached(links, members):
        return RING
    if n == 2 and len(heavy) == 2:
        return RING
    if len(links) == n - 1 and _reached(links, members):
        one_way = len(heavy) == n - 1 and max(len(v) for v in (*out.values(), *into.values())) == 1
        return CHAIN if one_way else TREE
    return UNKNOWN


def _in_order(heavy: set[tuple[int, int]], members: Sequence[int]) -> list[int]:
    """Return the members of a chain from the first stage to the last."""
    after = dict(heavy)
    order = [m for m in members if m not in after.values()][:1]
    while order[-1] in after:
        order.append(after[order[-1]])
    return order


def _reached(links: set[tuple[int, int]], members: Sequence[int]) -> bool:
    """Tell whether every member can be reached from the first one."""
    seen, todo = {members[0]}, [members[0]]
    while todo:
        at = todo.pop()
        near = {b if a == at else a for a, b in links if at in (a, b)} - seen
        seen |= near
        todo += near
    return len(seen) == len(members)


FEATURE = Parts
