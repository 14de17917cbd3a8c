"""The access link of each host: whether everything that crosses it suffers, and only that.

A queue, delay, loss or outage at one host's port touches all pairs of that host and no other. Each
column compares the pairs that touch the host with those that do not, so the culprit end of a slow
pair is found without knowing the topology.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from skewscope.core.features import FeatureColumn, FeatureRows, FeatureSpec, Slice, nan_rows
from skewscope.core.tables import Array
from skewscope.features import tcp_kernel as t
from skewscope.features.graph import GraphRows
from skewscope.features.groups import GroupRows
from skewscope.features.reference import LEARN, Reference
from skewscope.features.transport import PairRows

RECENT = 10
"""Slices (1 s) over which losses of a pair are counted together: retransmission timers are 0.2 s."""

SLOW_SHARE = 0.02
"""A pair is slow when its delay grew by this share of the group's usual time per round. A ring of N
passes 2(N-1) messages one after the other, so the round grows by many times that."""

SLOW_SCALES = 8.0
"""... and by this many of its own scales."""

STICKY = 5
"""Slices for which a pair that was slow still counts as slow: not every pair sends in every slice."""

DOUBT = 0.25
"""Pairs added to a host's own in its share, so that a host known by one pair is accused with less
certainty than one all of whose three pairs are slow."""

MIN_RTTS = 5
"""Round trips per window that a pair of members needs: flows with a message a step are answered late
by design (delayed acknowledgements), busy flows are not."""

OUTAGE_INTERVALS = 2.0
"""A link is thought silent after this many of the longest usual round intervals without a crossing."""

MAX_HOSTS = 4096


@dataclass
class _Pair:
    """What is remembered of a directed pair."""

    lost: deque[int] = field(default_factory=lambda: deque(maxlen=RECENT))
    segments: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
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


@dataclass
class _Episode:
    """Lost copies of one host since its link last looked whole."""

    since_ns: int = 0
    smallest: float = float("inf")
    lost: int = 0
    last_ns: int = 0


@dataclass
class _Gap:
    """A time in which nothing was seen to cross one host's link."""

    start_ns: int
    end_ns: int
    lost_in: bool = False
    lost_out: bool = False
    lost: int = 0
    others_lost: int = 0
    smallest: float = float("inf")
    told: bool = False


class Links:
    """Per host and window: delay, loss, outage and size dependence of its access link."""

    SPEC = FeatureSpec(
        "link",
        "access link of a host inside the cluster",
        {
            "delay_in_s": FeatureColumn("s", "median growth of transit on pairs into the host"),
            "delay_out_s": FeatureColumn("s", "the same on pairs out of it"),
            "delay_s": FeatureColumn("s", "the larger of the two"),
            "delay_ratio": FeatureColumn("1", "the same over the usual time per round"),
            "slow_share": FeatureColumn("1", "share of the host's pairs that are slow"),
            "slow_cover": FeatureColumn("1", "share of all slow pairs that touch the host"),
            "slow_fit": FeatureColumn("1", "product of the two: 1 = all of its pairs and only those"),
            "reordered": FeatureColumn("1", "segments that arrived behind later ones, both ways"),
            "lost": FeatureColumn("1", "copies lost on its pairs in the last second, in the worse direction"),
            "lost_share": FeatureColumn("1", "the same over segments sent"),
            "lost_fit": FeatureColumn(
                "1", "share of the cluster's losses that this direction of this link explains"
            ),
            "lost_pairs": FeatureColumn("1", "pairs of that direction with losses"),
            "lost_pair_share": FeatureColumn("1", "the same over the active pairs of that direction"),
            "lost_direction": FeatureColumn("1", "+1 = towards the host, -1 = from it, 0 = both alike"),
            "lost_smallest_bytes": FeatureColumn("bytes", "smallest copy lost since losses began"),
            "passed_largest_bytes": FeatureColumn("bytes", "largest copy that crossed since then"),
            "episode_lost": FeatureColumn("1", "copies lost since losses began"),
            "outage_s": FeatureColumn("s", "time in which everything both ways was lost, once it is over"),
            "outage_smallest_bytes": FeatureColumn("bytes", "smallest copy lost meanwhile"),
            "outage_fit": FeatureColumn("1", "share of the losses of that time that touch the host"),
            "episode_fit": FeatureColumn(
                "1", "share of the cluster's losses of that time that touch the host"
            ),
            "round_s": FeatureColumn("s", "usual time per round of the host's group"),
        },
    )
    NEEDS: Sequence[str] = ("host", "pair", "group")

    def __init__(self) -> None:
        self._pairs: dict[tuple[int, int], _Pair] = {}
        self._delay = Reference()
        self._episodes: dict[int, _Episode] = {}
        self._passed: dict[int, int] = {}
        self._sizes: dict[int, dict[int, int]] = {}
        self._gaps: dict[int, deque[_Gap]] = {}
        self._tried: dict[int, int] = {}
        self._sums: dict[tuple[int, int], float] = {}
        self._sums_at = -1
        self._lost_at: dict[tuple[int, int], deque[int]] = {}
        self._tick = 0

    def update(self, slice_: Slice, others: Mapping[str, FeatureRows]) -> FeatureRows:
        """Absorb one slice."""
        graph = cast(GraphRows, others["host"])
        pairs = cast(PairRows, others["pair"])
        groups = cast(GroupRows, others["group"])
        self._tick += 1
        client = graph.is_client()
        inner = {k: i for k, i in pairs.pair_of.items() if not client[k[0]] and not client[k[1]]}
        round_s = float(np.median(list(groups.round_s.values()))) if groups.round_s else float("nan")
        for key, i in inner.items():
            self._absorb(key, i, pairs, round_s, bool(graph.member[key[0]] >= 0 <= graph.member[key[1]]))
        events = pairs.events
        self._note_tried(slice_, client)
        self._note_passed(graph, pairs.passed, groups)
        self._note_lost(slice_, graph, events, client)
        hosts = sorted({h for key in self._pairs for h in key})[:MAX_HOSTS]
        columns = {name: nan_rows(len(hosts)) for name in self.SPEC.columns}
        onset = {
            n: np.zeros(len(hosts), dtype=np.int64) for n in ("delay_s", "lost", "outage_s", "episode_lost")
        }
        frames = {n: np.full((len(hosts), 2), -1, dtype=np.int64) for n in ("delay_s", "lost")}
        rows = FeatureRows("link", [slice_.directory.addresses[h] for h in hosts], columns, onset, frames)
        active = {k: p for k, p in self._pairs.items() if p.seen > self._tick - RECENT}
        slow = {k for k, p in active.items() if p.slow_at > self._tick - STICKY}
        for i, h in enumerate(hosts):
            columns["round_s"][i] = groups.round_s.get(int(graph.member[h]), round_s)
            self._delays(rows, i, h, inner, pairs, active, slow)
            self._losses(rows, i, h, active, slice_, groups.longest_s.get(int(graph.member[h]), np.inf))
        return rows

    def _absorb(self, key: tuple[int, int], i: int, pairs: PairRows, round_s: float, mates: bool) -> None:
        pair = self._pairs.setdefault(key, _Pair())
        pair.segments.append(pairs.columns["segments"][i])
        pair.lost.append(int(pairs.columns["lost"][i]))
        if not pairs.columns["segments"][i]:
            return
        pair.seen = self._tick
        pair.first_ns = pair.first_ns or int(pairs.onset_ns["transit_s"][i])
        delay, kind = pairs.columns["transit_p90_s"][i], "transit"
        if not np.isfinite(delay):
            # A round trip holds the answering host's own time, which between client and server is
            # the application's: such a pair can clear a link that it crosses, never accuse it.
            delay, kind = pairs.columns["rtt_s" if mates else "rtt_min_s"][i], "rtt"
            if mates and pairs.columns["rtt_samples"][i] < MIN_RTTS:
                delay = float("nan")
        pair.excess_s, pair.slow, pair.witness = float("nan"), False, mates or kind == "transit"
        if not np.isfinite(delay):
            return
        load = _load(pairs.columns["bytes"][i])
        known = self._known_load(key, kind, load)
        usual, scale = self._delay.get((key, kind, known))
        # Until the length of a round is known everything is learned and nothing is judged.
        floor = SLOW_SHARE * round_s if np.isfinite(round_s) else float("inf")
        if np.isfinite(usual):
            common = self._common(key, kind, usual)
            pair.excess_s = delay - min(usual, common)
            pair.always = usual - common > floor
            pair.slow = bool(pair.excess_s > max(floor, SLOW_SCALES * scale))
            pair.slow_at = self._tick if pair.slow else pair.slow_at
        # A slow pair teaches the class that it was compared with, which rejects it, not a new one.
        taught = known if pair.slow else load
        self._delay.learn((key, kind, taught), np.array([delay]), floor / 6.0)
        if pair.load_known < load and self._delay.size((key, kind, load)) >= LEARN:
            pair.load_known = load

    def _known_load(self, key: tuple[int, int], kind: str, load: int) -> int:
        """Return the load class to compare with: this one or, where it is new and lighter than a known
        one, the next heavier; -1 where heavier than any before: a pair's own bursts make a queue.
        """
        for known in range(load, self._pairs[key].load_known + 1):
            if self._delay.size((key, kind, known)) >= LEARN:
                return known
        return -1

    def _least(self, key: tuple[int, int], kind: str) -> float:
        """Return the least usual delay of a pair over its load classes (s), NaN while none is known."""
        known = [self._delay.get((key, kind, n))[0] for n in range(self._pairs[key].load_known + 1)]
        return min((d for d in known if np.isfinite(d)), default=float("nan"))

    def _common(self, key: tuple[int, int], kind: str, usual: float) -> float:
        """Return what a pair's delay would be if it were like the others (a fault from the start).

        Only there-and-back sums are compared: they hold no clock offset between taps.
        """
        if kind != "transit":
            return usual
        if self._sums_at != self._tick:
            self._sums, self._sums_at = self._there_and_back(kind), self._tick
        mine = self._sums.get((min(key), max(key)))
        if mine is None or len(self._sums) < 3:
            return usual
        # A bad link is on 2 of N pairs' share of all: two thirds with three hosts, half with four.
        others = float(np.quantile(list(self._sums.values()), 0.25))
        return usual - max(0.0, mine - others) / 2

    def _there_and_back(self, kind: str) -> dict[tuple[int, int], float]:
        """Return the usual delay there and back of each pair of hosts (s), as known before this window."""
        sums = {}
        for a, b in self._pairs:
            if a < b and (b, a) in self._pairs:
                total = self._least((a, b), kind) + self._least((b, a), kind)
                if np.isfinite(total):
                    sums[(a, b)] = total
        return sums

    def _delays(
        self, rows: FeatureRows, i: int, h: int, inner: dict[tuple[int, int], int], pairs: PairRows,
        active: dict[tuple[int, int], _Pair], slow: set[tuple[int, int]],
    ) -> None:  # fmt: skip
        c = rows.columns
        told = {k: p for k, p in active.items() if h in k and p.witness and np.isfinite(p.excess_s)}
        into = [p.excess_s for k, p in told.items() if k[1] == h]
        out = [p.excess_s for k, p in told.items() if k[0] == h]
        if not into and not out:
            return
        c["delay_in_s"][i] = np.median(into) if into else np.nan
        c["delay_out_s"][i] = np.median(out) if out else np.nan
        c["delay_s"][i] = np.nanmax([c["delay_in_s"][i], c["delay_out_s"][i]])
        c["delay_ratio"][i] = c["delay_s"][i] / c["round_s"][i]
        mine = {frozenset(k) for k in active if h in k}
        hit = {frozenset(k) for k in slow if h in k}
        everywhere = {frozenset(k) for k in slow if active[k].witness}
        if not hit & everywhere:
            hit = set()
        c["slow_share"][i] = len(hit) / (len(mine) + DOUBT)
        c["slow_cover"][i] = len(hit & everywhere) / len(everywhere) if everywhere else 0.0
        c["slow_fit"][i] = c["slow_share"][i] * c["slow_cover"][i]
        touching = [i for k, i in inner.items() if h in k]
        c["reordered"][i] = pairs.columns["reordered"][touching].sum()
        best = max(((active[k].excess_s, inner[k]) for k in hit_pairs(slow, h) if k in inner), default=None)
        if best is not None:
            onset, frames = pairs.onset_ns.get("transit_s"), pairs.frames.get("transit_s")
            if onset is not None and frames is not None:
                pair = next(active[k] for k, at in inner.items() if at == best[1])
                rows.onset_ns["delay_s"][i] = pair.first_ns if pair.always else onset[best[1]]
                rows.frames["delay_s"][i] = frames[best[1]]

    def _note_tried(self, slice_: Slice, client: Array) -> None:
        """Remember when data was first sent on each host's link, for those over which nothing passed yet."""
        p = slice_.tables["packets"]
        fresh = ~np.isin(np.arange(len(client)), list(self._passed))
        sent = (p["payload_bytes"] > 0) & ~client[p["src"]] & ~client[p["dst"]] & (p["flow"] > 0)
        sent &= fresh[p["src"]] | fresh[p["dst"]]
        for side in ("src", "dst"):
            hosts, at = np.unique(p[side][sent], return_index=True)
            for h, ts in zip(hosts.tolist(), p["ts_ns"][sent][at].tolist(), strict=True):
                if h not in self._passed:
                    self._tried.setdefault(h, ts)

    def _note_passed(self, graph: GraphRows, passed: Array, groups: GroupRows) -> None:
        """Remember when each host's link last let something through, and the gaps between."""
        lanes = passed[:, 0]
        for end in (lanes % 2, 1 - lanes % 2):
            hosts = graph.ends[lanes // 2, end]
            for h in np.unique(hosts):
                rows = passed[hosts == h]
                times = np.sort(rows[:, 1])
                steps = np.diff(times, prepend=self._passed.get(int(h), self._tried.get(int(h), times[0])))
                # Nothing is usual where a capture begins: whether it was a gap is settled when it is told.
                usual = groups.longest_s.get(int(graph.member[h]), t.DECIDE_NS / 1e9)
                for at in np.flatnonzero(steps > OUTAGE_INTERVALS * usual * 1e9):
                    gap = _Gap(int(times[at] - steps[at]), int(times[at]))
                    self._gaps.setdefault(int(h), deque(maxlen=8)).append(gap)
                self._passed[int(h)] = max(int(times[-1]), self._passed.get(int(h), 0))
                # When a copy of each size last crossed: the sizes in use are few.
                last = self._sizes.setdefault(int(h), {})
                order = np.argsort(rows[:, 1], kind="stable")
                last.update(zip(rows[order, 2].tolist(), rows[order, 1].tolist(), strict=True))

    def _note_lost(self, slice_: Slice, graph: GraphRows, events: Array, client: Array) -> None:
        for kind, lane, ts, length in events[:, :4]:
            if kind != t.E_LOST:
                continue
            a, b = int(graph.ends[lane // 2, lane % 2]), int(graph.ends[lane // 2, 1 - lane % 2])
            if client[a] or client[b]:
                continue
            self._lost_at.setdefault((a, b), deque(maxlen=256)).append(int(ts))
            self._blame_gaps(a, b, int(ts), float(length))
            for h in (a, b):
                e = self._episodes.setdefault(h, _Episode())
                if slice_.end_ns - e.last_ns > RECENT * (slice_.end_ns - slice_.start_ns) * 3:
                    self._episodes[h] = e = _Episode(since_ns=int(ts))
                e.smallest, e.last_ns, e.lost = min(e.smallest, float(length)), slice_.end_ns, e.lost + 1

    def _blame_gaps(self, a: int, b: int, ts: int, length: float) -> None:
        for h, gaps in self._gaps.items():
            for gap in gaps:
                if not gap.start_ns <= ts <= gap.end_ns:
                    continue
                if h in (a, b):
                    gap.lost += 1
                    gap.smallest = min(gap.smallest, length)
                    gap.lost_out, gap.lost_in = gap.lost_out or h == a, gap.lost_in or h == b
                else:
                    gap.others_lost += 1

    def _losses(
        self, rows: FeatureRows, i: int, h: int, active: dict[tuple[int, int], _Pair], slice_: Slice,
        longest_s: float,
    ) -> None:  # fmt: skip
        c = rows.columns
        lost = {k: sum(p.lost) for k, p in active.items()}
        total = sum(lost.values())
        into = {k: n for k, n in lost.items() if k[1] == h}
        out = {k: n for k, n in lost.items() if k[0] == h}
        n_in, n_out = sum(into.values()), sum(out.values())
        worse = into if n_in >= n_out else out
        sent = sum(sum(active[k].segments) for k in worse)
        c["lost"][i] = max(n_in, n_out)
        c["lost_share"][i] = c["lost"][i] / sent if sent else 0.0
        both = n_in + n_out
        # Losses in one direction accuse one side of a pair; in both, the link that all share.
        balance = abs(n_in - n_out) / both if both else 0.0
        explained = c["lost"][i] if balance > 0.6 else both
        c["lost_fit"][i] = explained / total if total else 0.0
        c["lost_pairs"][i] = sum(1 for n in worse.values() if n)
        c["lost_pair_share"][i] = c["lost_pairs"][i] / max(len(worse), 1)
        c["lost_direction"][i] = 0.0 if balance <= 0.6 else (1.0 if n_in > n_out else -1.0)
        times = [
            ts
            for k, seen in self._lost_at.items()
            if h in k
            for ts in seen
            if ts > slice_.end_ns - 10**9 - t.DECIDE_NS
        ]
        rows.onset_ns["lost"][i] = min(times, default=0)
        c["outage_s"][i] = c["outage_fit"][i] = c["outage_smallest_bytes"][i] = 0.0
        for gap in self._gaps.get(h, ()):
            settled = slice_.end_ns - gap.end_ns > 2 * t.DECIDE_NS
            settled &= gap.end_ns - gap.start_ns > OUTAGE_INTERVALS * longest_s * 1e9
            if settled and not gap.told and gap.lost_in and gap.lost_out:
                c["outage_s"][i] = (gap.end_ns - gap.start_ns) / 1e9
                c["outage_fit"][i] = gap.lost / (gap.lost + gap.others_lost)
                c["outage_smallest_bytes"][i] = gap.smallest
                rows.onset_ns["outage_s"][i] = gap.start_ns
            gap.told = gap.told or settled
        e = self._episodes.get(h)
        if e is not None and e.lost and slice_.end_ns - e.last_ns < 3 * 10**9:
            c["lost_smallest_bytes"][i], c["episode_lost"][i] = e.smallest, e.lost
            sizes = self._sizes.get(h, {})
            c["passed_largest_bytes"][i] = max((n for n, ts in sizes.items() if ts > e.since_ns), default=0)
            since = sum(1 for seen in self._lost_at.values() for ts in seen if ts >= e.since_ns)
            c["episode_fit"][i] = e.lost / max(since, e.lost)
            rows.onset_ns["episode_lost"][i] = e.since_ns


def _load(sent_bytes: float) -> int:
    """Return the class of a pair's load in a window: powers of four of its bytes."""
    return int(sent_bytes).bit_length() // 2


def hit_pairs(slow: set[tuple[int, int]], host: int) -> list[tuple[int, int]]:
    """Return the slow pairs that touch a host."""
    return [k for k in slow if host in k]


FEATURE = Links
