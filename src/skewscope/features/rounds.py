"""Collective rounds per group, joined over the members' own taps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import numpy as np

from skewscope.core.features import FeatureColumn, FeatureRows, FeatureSpec, Slice
from skewscope.core.tables import Array, Table
from skewscope.features import round_kernel as k
from skewscope.features.bursts import OPAQUE, Bursts
from skewscope.features.chain_kernel import INPUT, OUTPUT
from skewscope.features.chains import DATA_KINDS, Chains
from skewscope.features.graph import PLAIN, TAGGED, GraphRows, grow, is_collective
from skewscope.features.parts import PartRows
from skewscope.features.untagged import UNTAGGED, Untagged

WAIT_NS = 1_000_000_000
"""A round that some member never reported is given up after this long (ten slices)."""

FULL_BYTES = 1_000
"""Payload from which on a segment counts as part of a bulk transfer: nearly a full Ethernet frame."""

MAX_MEMBERS = 1 << 14

OTHER, ASKED = -1, -2
"""Keys of events that are no message of a round: other data from the group, a request."""

ROCE_PORT = 4791
"""UDP port of RoCE: acknowledgements of the adapters, no word from a process."""


@dataclass
class Rounds:
    """Closed rounds in long form, one row per (round, member), sorted by round; int64 columns of
    shape (n,), times in ns. `start` marks the first row of each round.
    """

    group: Array
    key: Array
    member: Array
    entry: Array
    own: Array
    own_from: Array
    inside: Array
    inside_end: Array
    last_in: Array
    end: Array
    largest: Array
    data: Array
    taken: Array
    """Data bytes in."""
    previous: Array
    frame: Array
    inside_frame: Array
    asked: Array
    cleared: Array
    """What the member alone can be charged with, -1 = no clears to send tell."""
    unready: Array
    """How long it let its sender wait for clears to send."""
    matched: Array
    """Chains: how often input and output were matched anew; own times from before that may be wrong."""
    root: Array
    start: Array

    def __len__(self) -> int:
        return len(self.start)

    @staticmethod
    def of(rows: Array) -> Rounds:
        """Build from work rows int64 (n, W): group, entry of the round, done row, root flag."""
        r = 3
        at = {
            name: rows[:, r + col]
            for name, col in (
                ("key", k.KEY), ("entry", k.FIRST_OUT), ("own", k.OWN), ("own_from", k.OWN_FROM),
                ("inside", k.INSIDE), ("inside_end", k.INSIDE_END), ("last_in", k.LAST_IN),
                ("end", k.LAST_EVENT), ("largest", k.LARGEST), ("data", k.DATA_OUT), ("taken", k.DATA_IN),
                ("previous", k.PREVIOUS), ("frame", k.FRAME), ("inside_frame", k.INSIDE_FRAME),
                ("asked", k.ASKED), ("cleared", k.CLEARED), ("unready", k.UNREADY), ("matched", k.MATCHED),
            )
        }  # fmt: skip
        untagged = at["key"] >> 32 == UNTAGGED
        held = rows[:, r + k.HELD] - at["inside"]
        at["own"] = np.where(untagged & (at["own"] > 0), at["own"] + held, at["own"])
        at["cleared"] = np.where(untagged, at["cleared"], -1)
        group, key = rows[:, 0], at["key"]
        fresh = np.ones(len(rows), dtype=np.bool_)
        fresh[1:] = (group[1:] != group[:-1]) | (key[1:] != key[:-1])
        return Rounds(group=group, member=rows[:, 2], root=rows[:, 1], start=np.flatnonzero(fresh), **at)


class Held(NamedTuple):
    """The rows of a slice's rounds as lists: a member has a handful of them, too few for arrays to pay.

    Times in s, own and inside in ns.
    """

    excess: list[float]
    busy: list[float]
    peers_own: list[float]
    wait: list[float]
    masked: list[bool]
    kind: list[int]
    own: list[int]
    inside: list[int]
    root: list[int]

    @staticmethod
    def of(r: Rounds, excess: Array, busy: Array, peers_own: Array, wait: Array, masked: Array) -> Held:
        """Take the columns over; excess, busy, peers_own, wait (s) and masked are of shape (n,)."""
        columns = (excess, busy, peers_own, wait, masked, r.key >> 32, r.own, r.inside, r.root)
        return Held(*(column.tolist() for column in columns))


@dataclass
class RoundRows(FeatureRows):
    """Rows per group (see SPEC), the closed rounds of the window, and how far each member is."""

    rounds: Rounds = field(default_factory=lambda: Rounds.of(np.zeros((0, 3 + k.R_COLUMNS), dtype=np.int64)))
    last_out: dict[int, int] = field(default_factory=dict)
    """Address id of a member -> time of its last collective message out (ns)."""
    last_in: dict[int, int] = field(default_factory=dict)
    """The same for messages in."""


class RoundFeature:
    """Turns framed messages into rounds with own time and time inside per member."""

    SPEC = FeatureSpec(
        "round",
        "closed rounds of a collective group in the window",
        {
            "rounds": FeatureColumn("1", "rounds closed"),
            "bytes": FeatureColumn("bytes", "data bytes that its members sent in them"),
        },
    )
    NEEDS: Sequence[str] = ("host", "part")

    def __init__(self) -> None:
        self._chains = Chains()
        self._bursts = Bursts()
        self._untagged = Untagged()
        self._full_lanes = np.zeros(0, dtype=np.int64)
        self._index = np.zeros(0, dtype=np.int32)  # address id -> member row + 1
        self._address: list[int] = []
        self._rounds = np.zeros((0, k.OPEN, k.R_COLUMNS), dtype=np.int64)
        self._members = np.zeros((0, k.M_COLUMNS), dtype=np.int64)
        self._waiting = np.zeros((0, 1 + k.R_COLUMNS), dtype=np.int64)

    def update(self, slice_: Slice, others: Mapping[str, FeatureRows]) -> RoundRows:
        """Absorb one slice."""
        graph = cast(GraphRows, others["host"])
        stages = cast(PartRows, others["part"]).stages
        self._learn(slice_, graph)
        events = self._events(slice_, graph, stages)
        done = np.zeros((len(events) + 1, 1 + k.R_COLUMNS), dtype=np.int64)
        count = k.absorb(events, self._rounds, self._members, done)
        passed = self._pass_on(slice_, graph, stages, events[events[:, k.V_KEY] == ASKED])
        rounds = self._join(slice_, graph, np.concatenate([done[:count], passed]), stages)
        groups, which = np.unique(rounds.group, return_inverse=True)
        names = slice_.directory.addresses
        columns = {
            "rounds": np.bincount(which[rounds.start], minlength=len(groups)).astype(np.float64),
            "bytes": np.bincount(which, rounds.data, minlength=len(groups)).astype(np.float64),
        }
        state = self._members
        return RoundRows(
            "round",
            [names[g] for g in groups],
            columns,
            rounds=rounds,
            last_out={a: int(state[i, k.M_LAST_OUT]) for i, a in enumerate(self._address)},
            last_in={a: int(state[i, k.M_LAST_IN]) for i, a in enumerate(self._address)},
        )

    def _learn(self, slice_: Slice, graph: GraphRows) -> None:
        self._index = grow(self._index, len(slice_.directory.addresses), 0)
        messages = slice_.tables["messages"]
        messages = messages.take(is_collective(messages))
        opaque = graph.ends[np.flatnonzero(graph.opaque[: len(graph.ends)])].ravel()
        for address in np.unique(np.concatenate([messages["src"], messages["dst"], opaque])):
            if self._index[address] == 0 and len(self._address) < MAX_MEMBERS:
                self._address.append(int(address))
                self._index[address] = len(self._address)
        old = len(self._rounds)
        if old < len(self._address):
            self._rounds = grow(self._rounds, len(self._address), 0)
            self._rounds[old:, :, k.KEY] = -1
            self._members = grow(self._members, len(self._address), 0)
            self._members[old:, k.M_CURRENT] = -1

    def _pass_on(
        self, slice_: Slice, graph: GraphRows, stages: Mapping[int, Sequence[int]], asked: Array
    ) -> Array:
        """Return the rounds that chains closed, and note how far their members are."""
        address = np.array(self._address, dtype=np.int64)
        when = np.stack([asked[:, k.V_TS], address[asked[:, k.V_MEMBER]]], axis=1)
        messages, holes = slice_.tables["messages"], slice_.tables["holes"]
        passed = self._chains.rounds(messages, holes, when, graph, stages)
        passed[:, 0] = self._index[passed[:, 0]] - 1
        members, last = self._chains.last()
        rows = self._index[members] - 1
        for column, way in ((k.M_LAST_IN, INPUT), (k.M_LAST_OUT, OUTPUT)):
            np.maximum.at(self._members[:, column], rows, last[:, way])
        return passed

    def _events(self, slice_: Slice, graph: GraphRows, stages: Mapping[int, Sequence[int]]) -> Array:
        """Return the event rows of both ends of each message, at each end's vantage; not those of chains."""
        whole = slice_.tables["messages"]
        if stages:
            whole = whole.take(~np.isin(graph.member[whole["src"]], list(stages)))
        m = whole.take(whole["framing"] == TAGGED)
        flow, way = m["flow"].astype(np.int64), m["way"].astype(np.int64)
        key = (m["collective"].astype(np.int64) << 32) | m["tag"]
        frame = m["frame"].astype(np.int64) | (m["tap"].astype(np.int64) << 48)
        # Sends from one to one belong to no collective: their receiver may have had to wait for them.
        plain = m["collective"] == PLAIN
        key = np.where(plain, OTHER, key)
        parts = []
        for out, side, end in ((1, "src", way), (0, "dst", 1 - way)):
            seen = graph.vantage[flow, end] == m["tap"]
            seen &= ~plain | ((out == 0) & (m["kind"] <= DATA_KINDS))
            parts.append(_event_rows(m["ts_ns"], self._index[m[side]], out, key, m["nbytes"], frame, seen))
        parts.append(self._untagged.events(whole, slice_.tables["holes"], graph, self._index))
        p = slice_.tables["packets"]
        if graph.opaque.any():
            parts += self._burst_events(p, graph)
        flow, way = p["flow"].astype(np.int64), p["way"].astype(np.int64)
        group = graph.member[p["dst"]]
        inner = (group >= 0) & (graph.member[p["src"]] == group)
        asked = graph.server[flow] == 1 - way
        # Bulk data between members says nothing of when a round may begin; a work list is one message.
        seen = (
            (p["payload_bytes"] > 0)
            & (p["payload_bytes"] < FULL_BYTES)
            & ~graph.collective[flow]
            & (flow > 0)
            & (inner | asked)
            & ~((p["proto"] == 17) & (p["dport"] == ROCE_PORT))
        )
        seen &= (graph.vantage[flow, 1 - way] == p["tap"]) & (self._index[p["dst"]] > 0)
        seen &= ~(inner & self._bulky(flow * 2 + way, p["payload_bytes"] >= FULL_BYTES))
        kind = np.where(inner, OTHER, ASKED).astype(np.int64)
        parts.append(_event_rows(p["ts_ns"], self._index[p["dst"]], 0, kind, p["payload_bytes"], kind, seen))
        rows = np.concatenate(parts)
        return rows[np.argsort(rows[:, k.V_TS], kind="stable")]

    def _bulky(self, lane: Array, full: Array) -> Array:
        """Return which packets are on a lane that carried a full segment in this slice or the one before."""
        now = np.unique(lane[full])
        recent, self._full_lanes = np.union1d(now, self._full_lanes), now
        return np.asarray(np.isin(lane, recent))

    def _burst_events(self, packets: Table, graph: GraphRows) -> list[Array]:
        """Return event rows of unframed groups: every data packet, under the number of its burst."""
        p = packets.take((packets["payload_bytes"] > 0) & graph.opaque[packets["flow"]])
        flow, way = p["flow"].astype(np.int64), p["way"].astype(np.int64)
        group = graph.member[p["src"]].astype(np.int64)
        numbers = self._bursts.keys(p["ts_ns"], group, p["src"].astype(np.int64), graph.groups)
        key = (np.int64(OPAQUE) << 32) | numbers
        frame = p["frame"].astype(np.int64) | (p["tap"].astype(np.int64) << 48)
        parts = []
        for out, side, end in ((1, "src", way), (0, "dst", 1 - way)):
            seen = graph.vantage[flow, end] == p["tap"]
            parts.append(
                _event_rows(p["ts_ns"], self._index[p[side]], out, key, p["payload_bytes"], frame, seen)
            )
        return parts

    def _join(
        self, slice_: Slice, graph: GraphRows, done: Array, stages: Mapping[int, Sequence[int]]
    ) -> Rounds:
        waiting = np.concatenate([self._waiting, done])
        # Rounds that a member never entered (it only listened) or that began before the capture.
        waiting = waiting[waiting[:, 1 + k.FIRST_OUT] > 0]
        # Seen from a neighbour's tap a round is partial; such rows count only where there are no others.
        told = graph.judged_at[np.array(self._address, dtype=np.int64)[waiting[:, 0]]] >= 0
        waiting = waiting[told] if told.any() else waiting
        if not len(waiting):
            self._waiting = waiting
            return Rounds.of(np.zeros((0, 3 + k.R_COLUMNS), dtype=np.int64))
        address = np.array(self._address, dtype=np.int64)[waiting[:, 0]]
        group = graph.member[address].astype(np.int64)
        key = waiting[:, 1 + k.KEY]
        order = np.lexsort((waiting[:, 1 + k.FIRST_OUT], key, group))
        waiting, address, group, key = waiting[order], address[order], group[order], key[order]
        fresh = np.ones(len(waiting), dtype=np.bool_)
        fresh[1:] = (group[1:] != group[:-1]) | (key[1:] != key[:-1])
        number = np.cumsum(fresh) - 1
        size = np.bincount(number)
        full = np.array([self._reporters(graph, int(g), stages) for g in group[fresh]])
        newest = np.zeros(len(size), dtype=np.int64)
        np.maximum.at(newest, number, waiting[:, 1 + k.LAST_EVENT])
        ready = (size >= full) | (newest < slice_.end_ns - WAIT_NS) | slice_.last
        out = ready[number]
        self._waiting = waiting[~out]
        # A broadcast's root sends data and takes none: its role in the round differs.
        root = (waiting[:, 1 + k.DATA_OUT] > 0) & (waiting[:, 1 + k.DATA_IN] == 0)
        rows = np.concatenate(
            [group[:, None], root[:, None].astype(np.int64), address[:, None], waiting[:, 1:]], axis=1
        )[out]
        first = np.zeros(len(size), dtype=np.int64)
        first[number[::-1]] = waiting[::-1, 1 + k.FIRST_OUT]
        by_time = np.lexsort((rows[:, 3 + k.FIRST_OUT], key[out], first[number][out], group[out]))
        return Rounds.of(rows[by_time])

    def _reporters(self, graph: GraphRows, group: int, stages: Mapping[int, Sequence[int]]) -> int:
        """Return how many members of a group report rounds: those with a tap, all where none has one."""
        members = graph.groups.get(group, [])
        told = [m for m in members if graph.judged_at[m] >= 0] or members
        return self._chains.senders(told) if group in stages else len(told)


def _event_rows(
    ts: Array, member: Array, out: int, key: Array, size: Array, frame: Array, keep: Array
) -> Array:
    rows = np.zeros((int(np.count_nonzero(keep)), k.V_COLUMNS), dtype=np.int64)
    rows[:, k.V_TS] = ts[keep]
    rows[:, k.V_MEMBER] = member[keep].astype(np.int64) - 1
    rows[:, k.V_OUT] = out
    rows[:, k.V_KEY] = key[keep]
    rows[:, k.V_BYTES] = size[keep]
    rows[:, k.V_FRAME] = frame[keep]
    return rows


FEATURE = RoundFeature
