"""Rounds of a chain of stages (pipeline parallel): one per micro-batch, from messages of any framing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from skewscope.core.tables import Array, Table
from skewscope.features import chain_kernel as c
from skewscope.features import round_kernel as k
from skewscope.features.bursts import BINS, silence_limit
from skewscope.features.credits import Credits
from skewscope.features.graph import (
    CLEAR_TO_SEND,
    NCCL_ROCE,
    PLAIN,
    TAGGED,
    GraphRows,
    grow,
    is_collective,
)

ANNOUNCED = 2
"""Kind of a Gloo message that says that its sender has the data."""
DATA_KINDS = 1

LIMIT_PARTS = 4
"""The silence that ends a burst is this part of the one that ends a round of an unframed group: own times of
one stage differ more than the steps of a group."""

CREDIT_NS = 500_000_000
"""Time over which the lowest count of grants stands for none left."""


class Chains:
    """Follows the micro-batches of all chains."""

    def __init__(self) -> None:
        self._row: dict[int, int] = {}
        self._address: list[int] = []
        self._ways = np.zeros((0, 2, c.D_COLUMNS), dtype=np.int64)
        self._histogram = np.zeros((0, 2, BINS))
        self._state = np.zeros((0, c.M_COLUMNS), dtype=np.int64)
        self._queue = np.zeros((0, c.QUEUE, c.Q_COLUMNS), dtype=np.int64)
        self._owns = np.zeros((0, c.OWN_ROWS, c.KEPT), dtype=np.int64)
        self._rounds = np.zeros((0, k.R_COLUMNS), dtype=np.int64)
        self._edges: dict[tuple[int, int, int], int] = {}
        self._credits = Credits()
        self._followed: dict[int, list[int]] = {}

    def senders(self, members: Sequence[int]) -> int:
        """Return how many of the members (address ids) send micro-batches on."""
        rows = [self._row[m] for m in members if m in self._row]
        return int(np.count_nonzero(self._state[rows, c.NUMBER] >= 0)) if rows else 0

    def last(self) -> tuple[list[int], Array]:
        """Return the members (address ids) and the times of their last message in and out, int64 (n, 2)."""
        return self._address, self._ways[: len(self._address), :, c.LAST]

    def rounds(
        self,
        messages: Table,
        holes: Table,
        asked: Array,
        graph: GraphRows,
        stages: Mapping[int, Sequence[int]],
    ) -> Array:
        """Return closed rounds int64 (n, 1 + R_COLUMNS), first column the address id of the member.

        messages, holes: of the slice; asked int64 (n, 2): time and address id of requests to members;
        stages: group id -> its members in the order of the chain.
        """
        self._forget(stages)
        if not stages:
            return np.zeros((0, 1 + k.R_COLUMNS), dtype=np.int64)
        rows, after = self._learn(stages, len(graph.member))
        parts = [self._events(messages, graph, rows, after)]
        lost = holes.take((rows[holes["src"]] >= 0) & (after[holes["src"]] == holes["dst"]))
        for ts, address, what in (
            (asked[:, 0], asked[:, 1], c.REQUEST),
            (lost["ts_ns"], lost["src"], c.LOST),
            (lost["ts_ns"], lost["dst"], c.LOST),
        ):
            known = np.flatnonzero(rows[address] >= 0)
            events = np.zeros((len(known), c.V_COLUMNS), dtype=np.int64)
            events[:, c.V_TS], events[:, c.V_MEMBER] = ts[known], rows[address[known]]
            events[:, c.V_WHAT] = what
            parts.append(events)
        found = np.concatenate(parts)
        found = found[np.argsort(found[:, c.V_TS], kind="stable")]
        self._limits()
        done = np.zeros((len(found) + 1, 1 + k.R_COLUMNS), dtype=np.int64)
        count = c.pass_on(
            found, self._ways, self._histogram, self._state, self._queue, self._owns, self._rounds, done
        )
        done = done[:count]
        done[:, 0] = np.array(self._address, dtype=np.int64)[done[:, 0]]
        return done

    def _forget(self, stages: Mapping[int, Sequence[int]]) -> None:
        """Let go of what is under way in chains that are new or of another order: not all of it was seen."""
        for g, chain in stages.items():
            if self._followed.get(g) != list(chain):
                rows = [self._row[m] for m in chain if m in self._row]
                self._state[rows, c.SIZE] = 0
                self._rounds[rows, k.KEY] = -1
                self._ways[rows] = 0
        self._followed = {g: list(chain) for g, chain in stages.items()}

    def _learn(self, stages: Mapping[int, Sequence[int]], addresses: int) -> tuple[Array, Array]:
        """Return per address id its row and the address id of the next stage, -1 = none; int64 each."""
        after = np.full(addresses, -1, dtype=np.int64)
        for chain in stages.values():
            for m in chain:
                if m not in self._row:
                    self._row[m] = len(self._address)
                    self._address.append(m)
        old, count = len(self._state), len(self._address)
        if count > old:
            self._ways, self._histogram = grow(self._ways, count, 0), grow(self._histogram, count, 0)
            self._queue, self._rounds = grow(self._queue, count, 0), grow(self._rounds, count, 0)
            self._owns = grow(self._owns, count, 0)
            self._state = grow(self._state, count, 0)
            self._state[old:, [c.NUMBER, c.NUMBER_IN, c.BEFORE]] = -1
            self._rounds[old:, k.KEY] = -1
        for chain in stages.values():
            for before, m in zip(chain, [*chain[1:], chain[0]], strict=True):
                after[before] = m
                self._state[self._row[m], c.BEFORE] = -1 if m == chain[0] else self._row[before]
        rows = np.full(addresses, -1, dtype=np.int64)
        rows[self._address] = np.arange(count)
        rows[after < 0] = -1
        return rows, after

    def _limits(self) -> None:
        for row in range(len(self._address)):
            for way in (c.INPUT, c.OUTPUT):
                cells = self._ways[row, way]
                known = cells[c.LIMIT] > 0
                cells[c.LIMIT] = silence_limit(self._histogram[row, way]) // LIMIT_PARTS
                if not known and cells[c.LIMIT] > 0:  # all until now counted as one burst
                    cells[[c.COUNT, c.SHORT]] = 0
                    self._state[row, c.SIZE] = 0
                    self._rounds[row, k.KEY] = -1

    def _events(self, messages: Table, graph: GraphRows, rows: Array, after: Array) -> Array:
        """Return the events of the messages from each stage to the next, at that one's tap."""
        m = messages.take(is_collective(messages))
        m = m.take((m["framing"] != TAGGED) | (m["collective"] == PLAIN))
        clears = (m["framing"] == NCCL_ROCE) & (m["kind"] == CLEAR_TO_SEND)
        data = np.where(clears, m["dst"], m["src"]), np.where(clears, m["src"], m["dst"])
        on = np.flatnonzero((rows[data[0]] >= 0) & (after[data[0]] == data[1]))
        m, clears, sender = m.take(on), clears[on], data[0][on].astype(np.int64)
        ts, end = m["ts_ns"], np.maximum(m["ts_ns"], m["end_ns"])
        flow, way, kind, tap = m["flow"].astype(np.int64), m["way"].astype(np.int64), m["kind"], m["tap"]
        grant = self._grants(ts, np.stack([tap, sender, after[sender]], axis=1).astype(np.int64), clears)
        told = (m["framing"] != TAGGED) & (kind <= DATA_KINDS)
        leaves, comes = graph.vantage[flow, way] == tap, graph.vantage[flow, 1 - way] == tap
        parts = []
        for what, keep, side in (
            (c.OUTPUT, leaves & (told | (m["framing"] == TAGGED) & (kind == ANNOUNCED)), "src"),
            (c.GOES_ON, leaves & ~told & (kind <= DATA_KINDS), "src"),
            (c.INPUT, comes & (kind <= DATA_KINDS), "dst"),
        ):
            at = np.flatnonzero(keep)
            events = np.zeros((len(at), c.V_COLUMNS), dtype=np.int64)
            events[:, c.V_TS] = end[at] if what == c.INPUT else ts[at]
            events[:, c.V_BEGIN], events[:, c.V_END] = ts[at], end[at]
            events[:, c.V_MEMBER], events[:, c.V_WHAT] = rows[m[side][at]], what
            events[:, c.V_BYTES] = m["nbytes"][at]
            events[:, c.V_FRAME] = m["frame"][at].astype(np.int64) | (tap[at].astype(np.int64) << 48)
            events[:, c.V_CLEAR] = grant[at] if what == c.OUTPUT else 0
            parts.append(events)
        return np.concatenate(parts)

    def _grants(self, ts: Array, edges: Array, clears: Array) -> Array:
        """Return per message the clear to send that its sender had waited for (ns), 0 = none."""
        unique, back = np.unique(edges, axis=0, return_inverse=True)
        at = [self._edges.setdefault((int(t), int(a), int(b)), len(self._edges)) for t, a, b in unique]
        which = np.array(at, dtype=np.int64)[back.reshape(-1)]
        return np.where(clears, 0, self._credits.rows(ts, which, clears, ts // CREDIT_NS))
