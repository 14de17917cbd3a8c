"""The access link of each host: whether everything that crosses it suffers, and only that.

A queue, delay, loss or outage at one host's port touches all pairs of that host and no other. Each column
compares these with all others: the culprit end of a slow pair is found without knowing the topology.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import cast

import numpy as np

from skewscope.core.features import FeatureColumn, FeatureRows, FeatureSpec, Slice, nan_rows
from skewscope.core.tables import Array
from skewscope.features import tcp_kernel as t
from skewscope.features.graph import GraphRows
from skewscope.features.groups import GroupRows
from skewscope.features.link_state import (
    MAX_HOSTS,
    RECENT,
    TOLD_NS,
    Active,
    Episode,
    Gap,
    Pair,
    by_host,
    changes,
    latest,
    load_class,
    middle,
    short,
)
from skewscope.features.pressure import PRESSURE, Pressure
from skewscope.features.reference import LEARN, Reference
from skewscope.features.transport import PairRows

SLOW_SHARE = 0.02
"""A pair is slow when its delay grew by this share of the group's usual time per round. A ring of N
passes 2(N-1) messages one after the other, so the round grows by many times that."""

SLOW_SCALES = 8.0
"""... and by this many of its own scales."""

STICKY = 5
"""Slices for which a pair that was slow still counts as slow: not every pair sends in every slice."""

DOUBT = 0.25
"""Pairs added to a host's own in its share: who is known by one pair is accused with less certainty."""

MIN_RTTS = 5
"""Round trips per window that a pair of members needs: flows with a message a step are answered late
by design (delayed acknowledgements), busy flows are not."""

OUTAGE_INTERVALS = 2.0
"""A link is thought silent after this many of the longest usual round intervals without a crossing."""

USED = ("bytes", "segments", "lost", "transit_p90_s", "rtt_s", "rtt_min_s", "rtt_samples")
"""Columns of the pairs that are read one by one."""

COUNTED = ("lost", "lost_share", "lost_fit", "lost_pairs", "lost_pair_share", "lost_direction")
"""Columns that are zero while nothing is lost."""


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
            **PRESSURE,
        },
    )
    NEEDS: Sequence[str] = ("host", "pair", "group")

    def __init__(self) -> None:
        self._pairs: dict[tuple[int, int], Pair] = {}
        self._delay = Reference()
        self._pressure = Pressure()
        self._episodes: dict[int, Episode] = {}
        self._passed: dict[int, int] = {}
        self._sizes: dict[int, dict[int, int]] = {}
        self._gaps: dict[int, deque[Gap]] = {}
        self._tried: dict[int, int] = {}
        self._sums: dict[tuple[int, int], float] = {}
        self._sums_at = -1
        self._sums_low = 0.0
        self._hosts: set[int] = set()
        self._lost_at: dict[tuple[int, int], deque[int]] = {}
        self._lost_of: dict[int, list[tuple[int, int]]] = {}
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
        values = {n: pairs.columns[n].tolist() for n in USED}
        for key, i in inner.items():
            mates = bool(graph.member[key[0]] >= 0 <= graph.member[key[1]])
            self._absorb(key, i, pairs, values, round_s, mates)
        events = pairs.events
        self._note_tried(slice_, client)
        self._note_passed(graph, pairs.passed, groups)
        self._note_lost(slice_, graph, events, client)
        late = dict(zip(inner, pairs.columns["reordered"][list(inner.values())].tolist(), strict=True))
        hosts = sorted(self._hosts)[:MAX_HOSTS]
        columns = {name: nan_rows(len(hosts)) for name in self.SPEC.columns}
        dated = ("delay_s", "lost", "outage_s", "episode_lost")
        onset = {n: np.zeros(len(hosts), dtype=np.int64) for n in dated}
        frames = {n: np.full((len(hosts), 2), -1, dtype=np.int64) for n in ("delay_s", "lost")}
        rows = FeatureRows("link", [slice_.directory.addresses[h] for h in hosts], columns, onset, frames)
        active = self._active(slice_.end_ns)
        for name in ("outage_s", "outage_fit", "outage_smallest_bytes", *COUNTED):
            columns[name][:] = 0.0
        for i, h in enumerate(hosts):
            columns["round_s"][i] = groups.round_s.get(int(graph.member[h]), round_s)
            self._delays(rows, i, h, inner, pairs, active, late)
            longest_s = groups.longest_s.get(int(graph.member[h]), float("inf"))
            self._losses(rows, i, h, active, slice_, longest_s)
        self._pressure.write(rows, hosts, inner, pairs, (slice_.end_ns - slice_.start_ns) / 1e9)
        return rows

    def _active(self, end_ns: int) -> Active:
        pairs = {k: p for k, p in self._pairs.items() if p.seen > self._tick - RECENT}
        slow = {k for k, p in pairs.items() if p.slow_at > self._tick - STICKY}
        accused = {(min(k), max(k)) for k in slow if pairs[k].witness}
        recent = any(end_ns - e.last_ns < TOLD_NS for e in self._episodes.values())
        times = sorted(ts for seen in self._lost_at.values() for ts in seen) if recent else []
        return Active(pairs, slow, by_host(tuple(pairs)), accused, sum(p.lost for p in pairs.values()), times)

    def _absorb(
        self, key: tuple[int, int], i: int, pairs: PairRows, values: Mapping[str, list[float]],
        round_s: float, mates: bool,
    ) -> None:  # fmt: skip
        pair = self._pairs.get(key)
        if pair is None:
            pair = self._pairs[key] = Pair()
            self._hosts.update(key)
        pair.count(int(values["lost"][i]), values["segments"][i])
        if not values["segments"][i]:
            return
        pair.seen = self._tick
        pair.first_ns = pair.first_ns or int(pairs.onset_ns["transit_s"][i])
        delay, kind = values["transit_p90_s"][i], "transit"
        if not isfinite(delay):
            # A round trip holds the answering host's own time, which between client and server is
            # the application's: such a pair can clear a link that it crosses, never accuse it.
            delay, kind = values["rtt_s" if mates else "rtt_min_s"][i], "rtt"
            if mates and values["rtt_samples"][i] < MIN_RTTS:
                delay = float("nan")
        pair.excess_s, pair.slow, pair.witness = float("nan"), False, mates or kind == "transit"
        if not isfinite(delay):
            return
        load = load_class(values["bytes"][i])
        known = self._known_load(key, kind, load)
        usual, scale = self._delay.get((key, kind, known))
        # Until the length of a round is known everything is learned and nothing is judged.
        floor = SLOW_SHARE * round_s if isfinite(round_s) else float("inf")
        if isfinite(usual):
            common = self._common(key, kind, usual)
            pair.excess_s = delay - min(usual, common)
            pair.always = usual - common > floor
            pair.slow = bool(pair.excess_s > max(floor, SLOW_SCALES * scale))
            pair.slow_at = self._tick if pair.slow else pair.slow_at
        # A slow pair teaches the class that it was compared with, which rejects it, not a new one.
        taught = known if pair.slow else load
        self._delay.learn((key, kind, taught), [delay], floor / 6.0)
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
        return min((d for d in known if isfinite(d)), default=float("nan"))

    def _common(self, key: tuple[int, int], kind: str, usual: float) -> float:
        """Return what a pair's delay would be if it were like the others (a fault from the start).

        Only there-and-back sums are compared: they hold no clock offset between taps.
        """
        if kind != "transit":
            return usual
        if self._sums_at != self._tick:
            self._sums, self._sums_at = self._there_and_back(kind), self._tick
            # A bad link is on 2 of N pairs' share of all: two thirds with three hosts, half with four.
            self._sums_low = float(np.quantile(list(self._sums.values()), 0.25)) if self._sums else 0.0
        mine = self._sums.get((min(key), max(key)))
        if mine is None or len(self._sums) < 3:
            return usual
        return usual - max(0.0, mine - self._sums_low) / 2

    def _there_and_back(self, kind: str) -> dict[tuple[int, int], float]:
        """Return the usual delay there and back of each pair of hosts (s), as known before this window."""
        sums = {}
        for a, b in self._pairs:
            if a < b and (b, a) in self._pairs:
                total = self._least((a, b), kind) + self._least((b, a), kind)
                if isfinite(total):
                    sums[(a, b)] = total
        return sums

    def _delays(
        self, rows: FeatureRows, i: int, h: int, inner: dict[tuple[int, int], int], pairs: PairRows,
        active: Active, late: dict[tuple[int, int], float],
    ) -> None:  # fmt: skip
        c = rows.columns
        keys = active.of.get(h, [])
        told = [(k, p.excess_s) for k in keys if (p := active.pairs[k]).witness and isfinite(p.excess_s)]
        if not told:
            return
        into, out = middle([e for k, e in told if k[1] == h]), middle([e for k, e in told if k[0] == h])
        c["delay_in_s"][i], c["delay_out_s"][i] = into, out
        c["delay_s"][i] = np.fmax(into, out)
        c["delay_ratio"][i] = c["delay_s"][i] / c["round_s"][i]
        c["reordered"][i] = sum(late[k] for k in keys if k in late)
        c["slow_share"][i] = c["slow_cover"][i] = c["slow_fit"][i] = 0.0
        slow = [k for k in keys if k in active.slow]
        if not slow:
            return
        mine = {(min(k), max(k)) for k in keys}
        hit = {(min(k), max(k)) for k in slow}
        if not hit & active.accused:
            hit = set()
        c["slow_share"][i] = len(hit) / (len(mine) + DOUBT)
        c["slow_cover"][i] = len(hit & active.accused) / len(active.accused) if active.accused else 0.0
        c["slow_fit"][i] = c["slow_share"][i] * c["slow_cover"][i]
        now = ((active.pairs[k].excess_s, inner[k], k) for k in slow if k in inner)
        best = max(now, key=lambda x: (isfinite(x[0]), x), default=None)
        if best is not None:
            onset, frames = pairs.onset_ns.get("transit_s"), pairs.frames.get("transit_s")
            if onset is not None and frames is not None:
                pair = active.pairs[best[2]]
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
        if not len(passed):
            return
        passed = passed[np.argsort(passed[:, 1], kind="stable")]
        lanes = passed[:, 0]
        for end in (lanes % 2, 1 - lanes % 2):
            host = graph.ends[lanes // 2, end]
            order = np.argsort(short(host), kind="stable")
            host, times = host[order], passed[order, 1]
            head = np.flatnonzero(changes(host))
            steps = np.diff(times, prepend=times[:1])
            for h, at in zip(host[head].tolist(), head.tolist(), strict=True):
                steps[at] = times[at] - self._passed.get(h, self._tried.get(h, int(times[at])))
            # Nothing is usual where a capture begins: whether it was a gap is settled when it is told.
            usual = [groups.longest_s.get(int(graph.member[h]), t.DECIDE_NS / 1e9) for h in host[head]]
            limit = OUTAGE_INTERVALS * 1e9 * np.repeat(usual, np.diff(np.append(head, len(host))))
            for row in np.flatnonzero(steps > limit):
                gap = Gap(int(times[row] - steps[row]), int(times[row]))
                self._gaps.setdefault(int(host[row]), deque(maxlen=8)).append(gap)
            last = np.append(head[1:], len(host)) - 1
            for h, ts in zip(host[last].tolist(), times[last].tolist(), strict=True):
                self._passed[h] = max(ts, self._passed.get(h, 0))
            for h, nbytes, ts in latest(host, passed[order, 2], times):
                self._sizes.setdefault(h, {})[nbytes] = ts

    def _note_lost(self, slice_: Slice, graph: GraphRows, events: Array, client: Array) -> None:
        for lane, ts, length in events[events[:, 0] == t.E_LOST, 1:4].tolist():
            a, b = int(graph.ends[lane // 2, lane % 2]), int(graph.ends[lane // 2, 1 - lane % 2])
            if client[a] or client[b]:
                continue
            if (a, b) not in self._lost_at:
                self._lost_at[(a, b)] = deque(maxlen=256)
                for h in (a, b):
                    self._lost_of.setdefault(h, []).append((a, b))
            self._lost_at[(a, b)].append(int(ts))
            self._blame_gaps(a, b, int(ts), float(length))
            for h in (a, b):
                e = self._episodes.setdefault(h, Episode())
                if slice_.end_ns - e.last_ns > RECENT * (slice_.end_ns - slice_.start_ns) * 3:
                    self._episodes[h] = e = Episode(since_ns=int(ts))
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
        self, rows: FeatureRows, i: int, h: int, active: Active, slice_: Slice, longest_s: float
    ) -> None:
        c = rows.columns
        self._episode(rows, i, h, active, slice_)
        self._outages(rows, i, h, slice_, longest_s)
        if not active.lost:
            return
        into = [active.pairs[k] for k in active.of.get(h, ()) if k[1] == h]
        out = [active.pairs[k] for k in active.of.get(h, ()) if k[0] == h]
        n_in, n_out = sum(p.lost for p in into), sum(p.lost for p in out)
        worse = into if n_in >= n_out else out
        sent = sum(p.segments for p in worse)
        c["lost"][i] = max(n_in, n_out)
        c["lost_share"][i] = c["lost"][i] / sent if sent else 0.0
        both = n_in + n_out
        # Losses in one direction accuse one side of a pair; in both, the link that all share.
        balance = abs(n_in - n_out) / both if both else 0.0
        explained = c["lost"][i] if balance > 0.6 else both
        c["lost_fit"][i] = explained / active.lost
        c["lost_pairs"][i] = sum(1 for p in worse if p.lost)
        c["lost_pair_share"][i] = c["lost_pairs"][i] / max(len(worse), 1)
        c["lost_direction"][i] = 0.0 if balance <= 0.6 else (1.0 if n_in > n_out else -1.0)

    def _outages(self, rows: FeatureRows, i: int, h: int, slice_: Slice, longest_s: float) -> None:
        c = rows.columns
        for gap in self._gaps.get(h, ()):
            settled = slice_.end_ns - gap.end_ns > 2 * t.DECIDE_NS
            settled &= gap.end_ns - gap.start_ns > OUTAGE_INTERVALS * longest_s * 1e9
            if settled and not gap.told and gap.lost_in and gap.lost_out:
                c["outage_s"][i] = (gap.end_ns - gap.start_ns) / 1e9
                c["outage_fit"][i] = gap.lost / (gap.lost + gap.others_lost)
                c["outage_smallest_bytes"][i] = gap.smallest
                rows.onset_ns["outage_s"][i] = gap.start_ns
            gap.told = gap.told or settled

    def _episode(self, rows: FeatureRows, i: int, h: int, active: Active, slice_: Slice) -> None:
        """Describe the losses of the link since they began."""
        e, c = self._episodes.get(h), rows.columns
        if e is None or not e.lost:
            return
        since = slice_.end_ns - 10**9 - t.DECIDE_NS
        times = (ts for k in self._lost_of[h] for ts in self._lost_at[k] if ts > since)
        rows.onset_ns["lost"][i] = min(times, default=0)
        if slice_.end_ns - e.last_ns < TOLD_NS:
            c["lost_smallest_bytes"][i], c["episode_lost"][i] = e.smallest, e.lost
            sizes = self._sizes.get(h, {})
            c["passed_largest_bytes"][i] = max((n for n, ts in sizes.items() if ts > e.since_ns), default=0)
            remembered = len(active.times) - bisect_left(active.times, e.since_ns)
            c["episode_fit"][i] = e.lost / max(remembered, e.lost)
            rows.onset_ns["episode_lost"][i] = e.since_ns


FEATURE = Links
