"""Work model of each member: how much longer than its peers, and than usual, it held a round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from statistics import fmean as mean
from statistics import median
from typing import cast

import numpy as np

from skewscope.core.features import FeatureColumn, FeatureRows, FeatureSpec, Slice, nan_rows
from skewscope.core.tables import Array
from skewscope.features import tcp_kernel as t
from skewscope.features.bursts import OPAQUE
from skewscope.features.chain_kernel import SENT
from skewscope.features.dispersion import COLUMNS as UNSTEADY
from skewscope.features.dispersion import Dispersion, among_others
from skewscope.features.graph import GraphRows
from skewscope.features.groups import GroupRows
from skewscope.features.parts import ALL_TO_ALL, PartRows
from skewscope.features.peers import beyond_peers, by_clears, taken_shares
from skewscope.features.reference import RELEARN, Reference
from skewscope.features.rounds import Held, RoundRows, Rounds
from skewscope.features.stage_past import StagePast
from skewscope.features.transport import PairRows

LATE_SHARE = 0.12
"""A member is late in a round when its excess is at least this share of the group's usual time per
round: less costs under a quarter of a round and is within the 5-15 % spread of accelerators."""

LATE_SCALES = 6.0
"""... and this many of its own scales, so that a noisy member needs more."""

SETTLED_BURSTS = 12
"""Rounds of an unframed group before its members are judged."""

LEAST_SCALE = 0.02
"""Least scale of a member's excess, as a share of the usual time per round."""

MATURE = 24
"""Samples of what is usual before the mean of a window is tested against it."""

SCALE_GROWTH = 1.01
"""Most that a mature scale may grow from one window to the next: twofold in seven seconds."""

LEARN_SCALES = 3.0
"""A window whose mean is this many standard errors off is kept out of what is usual."""

LEAST_TAIL = 0.05
"""Least usual largest excess of a window, as a share of the usual time per round: clocks and the
kernel's own work alone give that much."""

MASK_NS = 400_000_000
"""How long a copy sent again keeps masking its sender's gaps: two least retransmission timers."""


IDLE_KEPT = 64
"""Idle window ends remembered per host: rounds are joined within ten."""


class Members:
    """Per member and window: its excess over peers at equal work, and what is usual for it.

    The excess of a round is (own time + time inside) less the median of the other members' in the
    same round: the message size, the phase and common noise are the same for all and cancel. Where no
    peer has a tap it is taken over the member's own past at equal kind and size of round. The
    member's usual excess (a fixed order of entry is normal) is learned per kind of round and taken
    off. Gaps in which the member had a copy of its own data under way again are left out: those
    are the network's.
    """

    SPEC = FeatureSpec(
        "member",
        "a member of a collective group",
        {
            "rounds": FeatureColumn("1", "rounds judged"),
            "late_rounds": FeatureColumn("1", "rounds in which it was late beyond what is usual for it"),
            "excess_s": FeatureColumn("s", "mean excess over what is usual for it"),
            "excess_max_s": FeatureColumn("s", "largest such excess"),
            "excess_ratio": FeatureColumn("1", "mean excess over the usual time per round"),
            "excess_z": FeatureColumn("1", "mean excess over its own standard error"),
            "group_slowdown": FeatureColumn(
                "1", "time that the group's rounds took over what they usually take"
            ),
            "pause_ratio": FeatureColumn("1", "largest excess over the longest usual interval"),
            "pause_tail_ratio": FeatureColumn("1", "largest excess over the usual largest of a window"),
            "peer_excess_s": FeatureColumn("s", "mean excess over its peers, usual or not"),
            "peer_ratio": FeatureColumn("1", "the same over the usual time per round"),
            "unsteady_ratio": FeatureColumn(
                "1",
                "mean time that it alone was late in its first rounds, over the usual time per round, else 0",
            ),
            "unsteady_late_share": FeatureColumn("1", "share of those rounds in which it was late"),
            "unsteady_level_share": FeatureColumn("1", "share in which it was level with its peers"),
            "busy_s": FeatureColumn("s", "mean own time plus time inside, what the member held a round for"),
            "peers_busy_s": FeatureColumn("s", "mean over the same rounds of the other members' median"),
            "own_s": FeatureColumn("s", "median own time"),
            "own_ref_s": FeatureColumn("s", "its reference"),
            "peers_own_s": FeatureColumn("s", "median own time of the other members in the same rounds"),
            "inside_s": FeatureColumn("s", "largest time inside a round"),
            "wait_s": FeatureColumn("s", "mean time from its entry to the last member's entry"),
            "received_ratio": FeatureColumn(
                "1", "all to all: most bytes that it received in a round over the mean of all members"
            ),
            "masked": FeatureColumn("1", "rounds left out because its data was under way again"),
        },
    )
    NEEDS: Sequence[str] = ("host", "pair", "part", "round", "group", "endpoint")

    def __init__(self) -> None:
        self._usual = Reference()
        self._own = Reference()
        self._past = Reference()
        self._stages = StagePast()
        self._dispersion = Dispersion()
        self._tail = Reference()
        self._skipped: dict[tuple[int, int], int] = {}
        self._quiet: dict[tuple[int, int], float] = {}
        self._resent: dict[int, list[int]] = {}
        self._idle: dict[int, list[int]] = {}

    def update(self, slice_: Slice, others: Mapping[str, FeatureRows]) -> FeatureRows:
        """Absorb one slice."""
        graph = cast(GraphRows, others["host"])
        groups = cast(GroupRows, others["group"])
        rounds = cast(RoundRows, others["round"]).rounds
        self._note_resent(slice_, graph, cast(PairRows, others["pair"]))
        self._note_idle(slice_, graph, others["endpoint"])
        members = [m for g in sorted(graph.groups) for m in graph.groups[g]]
        columns = {name: nan_rows(len(members)) for name in self.SPEC.columns}
        onset = {"excess_max_s": np.zeros(len(members), dtype=np.int64)}
        onset["late_rounds"] = np.zeros(len(members), dtype=np.int64)
        onset["unsteady_ratio"] = np.zeros(len(members), dtype=np.int64)
        frames = {"excess_max_s": np.full((len(members), 2), -1, dtype=np.int64)}
        keys = [slice_.directory.addresses[m] for m in members]
        rows = FeatureRows("member", keys, columns, onset, frames)
        if len(rounds):
            excess, busy, peers_own, wait, masked = self._excess(rounds, graph)
            self._compare(rows, members, rounds, excess, busy, graph, groups)
            of: dict[int, list[int]] = {}
            for row, m in enumerate(rounds.member.tolist()):
                of.setdefault(m, []).append(row)
            patterns = cast(PartRows, others["part"]).pattern
            share = taken_shares(rounds)
            held = Held.of(rounds, excess, busy, peers_own, wait, masked)
            for i, m in enumerate(members):
                mine = of.get(m)
                if mine:
                    known = [row for row in mine if isfinite(held.excess[row])]
                    columns["masked"][i] = sum(held.masked[row] for row in mine)
                    self._judge(rows, i, m, groups, int(graph.member[m]), rounds, known, held)
                    self._describe(rows, i, m, mine, held)
                    if patterns.get(int(graph.member[m])) == ALL_TO_ALL:
                        columns["received_ratio"][i] = share[mine].max()
                    if known:
                        columns["busy_s"][i] = mean([held.busy[row] for row in known])
                        apart = [held.busy[row] - held.excess[row] for row in known]
                        columns["peers_busy_s"][i] = mean(apart)
        return rows

    def _compare(
        self, rows: FeatureRows, members: list[int], r: Rounds, excess: Array, busy: Array,
        graph: GraphRows, groups: GroupRows,
    ) -> None:  # fmt: skip
        """Note who is late now and then while nothing is usual yet; only rounds with a peer count."""
        for name in UNSTEADY:
            rows.columns[name][:] = 0.0
        watched = [m for m in members if self._dispersion.wants(m)]
        if not watched:
            return
        compared, spread = among_others(busy, r.start)
        over, kind = np.where(compared, excess, np.nan), r.key >> 32
        for m in watched:
            mine = r.member == m
            self._dispersion.learn(m, kind[mine], over[mine], spread[mine], r.own_from[mine])
        for g, team in graph.groups.items():
            round_s = groups.round_s[g] if g in groups.settled else np.inf
            m, values, since = self._dispersion.judge(team, round_s)
            if m >= 0:
                i = members.index(m)
                rows.onset_ns["unsteady_ratio"][i] = since
                for name, value in zip(UNSTEADY, values, strict=True):
                    rows.columns[name][i] = value

    def _note_resent(self, slice_: Slice, graph: GraphRows, pairs: PairRows) -> None:
        sent_again = pairs.events[pairs.events[:, 0] == t.E_RESENT]
        for lane, ts in sent_again[:, 1:3]:
            self._resent.setdefault(int(graph.ends[lane // 2, lane % 2]), []).append(int(ts))
        horizon = slice_.start_ns - 20 * MASK_NS
        for host in list(self._resent):
            self._resent[host] = [ts for ts in self._resent[host] if ts > horizon]

    def _note_idle(self, slice_: Slice, graph: GraphRows, endpoints: FeatureRows) -> None:
        """Remember the window ends at which a member's endpoint had nothing in hand."""
        busy: dict[str, float] = {}
        hand = np.nan_to_num(endpoints.columns["active_streams"] + endpoints.columns["open_requests"])
        for key, count in zip(endpoints.keys, hand.tolist(), strict=True):
            host = key.rsplit(":", 1)[0].strip("[]")
            busy[host] = busy.get(host, 0.0) + count
        for members in graph.groups.values():
            for m in members:
                if busy.get(slice_.directory.addresses[m]) == 0.0:
                    self._idle.setdefault(m, []).append(slice_.end_ns)
                    del self._idle[m][:-IDLE_KEPT]

    def _excess(self, r: Rounds, graph: GraphRows) -> tuple[Array, Array, Array, Array, Array]:
        """Return per row: excess over peers, time held, peers' own, wait (s, NaN unknown), masked."""
        n = len(r.group)
        masked = np.zeros(n, dtype=np.bool_)
        own = np.where(r.own > 0, r.own / 1e9, np.nan)
        since = int(r.own_from.min())
        for host, ends in self._idle.items():
            if ends[-1] < since:
                continue
            # With nothing in hand a group waits for a request, not for a member; the front end's own
            # time then runs from the request.
            span = np.searchsorted(ends, r.entry) > np.searchsorted(ends, r.own_from)
            span &= r.group == graph.member[host]
            asked = span & (r.member == host) & (r.asked > r.own_from)
            own[span] = np.nan
            own[asked] = (r.entry[asked] - r.asked[asked]) / 1e9
        inside = r.inside / 1e9
        for host, times in self._resent.items():
            if not times:
                continue
            mine = np.flatnonzero(r.member == host)
            if len(mine):
                ts = np.array(times)
                own_hit = _overlaps(r.own_from[mine], r.entry[mine], ts)
                in_hit = _overlaps(r.inside_end[mine] - r.inside[mine], r.inside_end[mine], ts)
                own[mine[own_hit]] = np.nan
                inside[mine[in_hit]] = np.nan
                masked[mine] = own_hit | in_hit
        own[r.root == 1] = np.nan
        # The first bursts of an unframed group are cut by guesses about its silences.
        own[(r.key >> 32 == OPAQUE) & (r.key & 0xFFFFFFFF < SETTLED_BURSTS)] = np.nan
        # Seen from elsewhere a member's times hold the path's, so only members with a tap are judged.
        own[graph.judged_at[r.member] < 0] = np.nan
        busy = own + inside
        excess, peers_own, wait = nan_rows(n), nan_rows(n), nan_rows(n)
        alone = np.zeros(n, dtype=np.bool_)
        beyond_peers(r.start, r.entry, own, busy, excess, peers_own, wait, alone)
        chained = r.key >> 32 == SENT
        for row in np.flatnonzero(alone & ~chained).tolist():
            excess[row] = self._against_past(r, row, float(busy[row]))
        if chained.any():
            self._stages.excess(r, busy, chained, excess)
        by_clears(r, excess)
        return excess, busy, peers_own, wait, masked

    def _against_past(self, r: Rounds, row: int, busy: float) -> float:
        """Return the excess over the member's own past at equal work, where no peer has a tap (s)."""
        kind = (int(r.member[row]), int(r.key[row] >> 32), int(r.previous[row] >> 32))
        sized = (*kind, int(r.largest[row]).bit_length())
        usual = self._past.get(sized)[0]
        usual = usual if np.isfinite(usual) else self._past.get(kind)[0]
        for key in (kind, sized):
            self._past.learn(key, [busy], 0.1 * usual if usual > 0 else busy)
        return busy - usual

    def _judge(
        self, rows: FeatureRows, i: int, m: int, groups: GroupRows, g: int, r: Rounds, known: list[int],
        held: Held,
    ) -> None:  # fmt: skip
        c = rows.columns
        # The first rounds of a group differ in kind: by a guess at their length an order of entry looks late.
        round_s = groups.round_s.get(g, np.nan) if g in groups.settled else np.nan
        longest = groups.longest_s.get(g, np.nan)
        if not known or not isfinite(round_s):
            return
        values, kinds = [held.excess[row] for row in known], [held.kind[row] for row in known]
        beyond = [float("nan")] * len(known)
        late = [False] * len(known)
        error = list(beyond)
        young = False
        for kind in sorted(set(kinds)):
            part = [j for j, k in enumerate(kinds) if k == kind]
            key = (m, kind)
            usual, scale = self._usual.get(key)
            scale = self._calm(key, scale)
            shifted = False
            if isfinite(usual):
                limit = max(LATE_SCALES * scale, LATE_SHARE * round_s)
                noise = max(scale, LEAST_SCALE * round_s)
                for j in part:
                    beyond[j] = values[j] - usual
                    late[j] = beyond[j] > limit
                    error[j] = noise
                young = young or self._usual.size(key) < MATURE
                off = abs(mean([beyond[j] for j in part]))
                shifted = off > max(0.5 * LATE_SHARE * round_s, LEARN_SCALES * noise / len(part) ** 0.5)
            # A window that is off as a whole is not learned, however noisy the member.
            skipped = self._skipped.get(key, 0) + 1 if shifted else 0
            self._skipped[key] = skipped if skipped < RELEARN else 0
            if not shifted or skipped >= RELEARN:
                self._usual.learn(key, [values[j] for j in part], 0.25 * LATE_SHARE * round_s)
        c["peer_excess_s"][i] = mean(values)
        c["peer_ratio"][i] = c["peer_excess_s"][i] / round_s
        judged = [j for j, value in enumerate(beyond) if isfinite(value)]
        if not judged:
            return
        best = max(judged, key=beyond.__getitem__)
        top, most, excess_s = known[best], beyond[best], mean([beyond[j] for j in judged])
        c["rounds"][i], c["late_rounds"][i] = len(judged), sum(late)
        c["excess_s"][i], c["excess_max_s"][i] = excess_s, most
        c["excess_ratio"][i] = excess_s / round_s
        # A young reference is itself uncertain: no mean stands out of it.
        c["excess_z"][i] = 0.0 if young else excess_s * len(judged) ** 0.5 / mean([error[j] for j in judged])
        c["group_slowdown"][i] = groups.slowdown.get(g, 1.0)
        c["pause_ratio"][i] = most / longest
        known_tail = self._tail.get(m)[0]
        tail = max(known_tail if isfinite(known_tail) else 0.0, LEAST_TAIL * round_s)
        c["pause_tail_ratio"][i] = most / tail
        self._tail.learn(m, [most], 0.25 * tail)
        rows.onset_ns["excess_max_s"][i] = _began(r, top)
        if True in late:
            rows.onset_ns["late_rounds"][i] = _began(r, known[late.index(True)])
        frame = r.frame[top] if r.own[top] >= r.inside[top] else r.inside_frame[top]
        rows.frames["excess_max_s"][i] = frame >> 48, frame & 0xFFFFFFFFFFFF

    def _calm(self, key: tuple[int, int], scale: float) -> float:
        """Return the scale in use: it grows slowly, so that a fault's scatter does not excuse itself."""
        if self._usual.size(key) < MATURE:
            return scale
        calm = self._quiet[key] = min(scale, self._quiet.get(key, scale) * SCALE_GROWTH)
        return calm

    def _describe(self, rows: FeatureRows, i: int, m: int, mine: list[int], held: Held) -> None:
        c = rows.columns
        own = [held.own[row] / 1e9 for row in mine if held.own[row] > 0 and held.root[row] == 0]
        if own:
            middle = median(own)
            self._own.learn(m, own, middle)
            c["own_s"][i], c["own_ref_s"][i] = middle, self._own.get(m)[0]
        peers = [value for row in mine if isfinite(value := held.peers_own[row])]
        if peers:
            c["peers_own_s"][i] = median(peers)
        c["inside_s"][i] = max([held.inside[row] for row in mine]) / 1e9
        waits = [value for row in mine if isfinite(value := held.wait[row])]
        if waits:
            c["wait_s"][i] = mean(waits)


def _began(r: Rounds, row: int) -> int:
    """Return when the longer of the two gaps of a row began (ns)."""
    if r.own[row] >= r.inside[row]:
        return int(r.own_from[row])
    return int(r.inside_end[row] - r.inside[row])


def _overlaps(lo: Array, hi: Array, ts: Array) -> Array:
    """Return whether a masked time [ts, ts + MASK_NS) touches [lo, hi); shapes (n,), (n,), (m,)."""
    touches = (ts[None, :] < hi[:, None]) & (ts[None, :] + MASK_NS > lo[:, None])
    return np.asarray(touches.any(axis=1))


FEATURE = Members
