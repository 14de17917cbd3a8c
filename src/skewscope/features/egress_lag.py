"""How an endpoint's sends relate to the collective rounds of its host: lag, its spread, and round sizes.

The lag (last round ended at the host -> piece out of the host) is the serving layer's own time: it does
not move when rounds are slow, whoever slows them. Where a host runs no rounds that the tap can see,
these columns are not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from skewscope.core.features import FeatureColumn, Slice
from skewscope.core.tables import Array
from skewscope.features.graph import GraphRows, grow
from skewscope.features.host_rounds import HostRounds, Rounds
from skewscope.features.request_log import RequestLog
from skewscope.features.rolling import Ring, Usual, grouped_quantile
from skewscope.features.step_phase import StepPhase

if TYPE_CHECKING:
    from skewscope.features.endpoint_pace import Pieces

LATEST = 16
"""Values that make "now"."""

UNSEEN_PREFILL = 64.0
"""Size of an ordinary prefill round in decode rounds, assumed until some have been seen."""

MIN_PREFILLS, LONG_PREFILL = 2, 10.0
"""After so many prefills, one that is this many times the usual size does not become the usual one."""

PAUSE_SHARE = 0.3
"""Share of the rounds in a pause that must be large for it to be theirs: a blocked step is at least one
prefill and one decode; where only the output stopped, decode steps went on in between."""

IDLE_STEPS = 1.5
"""An engine that ended no round for so many usual chunk gaps has nothing to do."""

LATEST_FIRST = 3
"""Requests to an idle engine that make "now", after as many that told what is usual."""

MAX_HOSTS = 1 << 16

REGULAR_GAP, REGULAR_TAIL = 1.25, 1.5
"""Growth of the middle and of the tail of the gaps between rounds up to which rounds count as regular."""

LAG_COLUMNS = {
    "egress_lag_s": FeatureColumn(
        "s", "median of the latest lags: a round's end at the host to the piece out"
    ),
    "egress_lag_ref_s": FeatureColumn("s", "the usual lag, learned"),
    "egress_lag_share": FeatureColumn("1", "growth of the median lag, in usual chunk gaps"),
    "egress_lag_low_share": FeatureColumn("1", "growth of the lags' 10th percentile, in usual chunk gaps"),
    "ingress_lag_share": FeatureColumn(
        "1", "growth of the time from a request to an idle engine's first round, in usual chunk gaps"
    ),
    "egress_lag_ratio": FeatureColumn("1", "median of the latest lags over the usual lag"),
    "egress_jitter_share": FeatureColumn("1", "growth of the lag's spread (p90 - p10), in usual chunk gaps"),
    "round_gap_ratio": FeatureColumn("1", "median of the host's gaps between rounds over the usual one"),
    "round_gap_p90_ratio": FeatureColumn("1", "90th percentile of those gaps over the usual 90th percentile"),
    "pause_size_ratio": FeatureColumn(
        "1",
        "largest round in the longest common pause over the usual decode and prefill rounds, 0 = none ran",
    ),
    "pause_decode_ratio": FeatureColumn("1", "the same over the usual decode rounds alone"),
}


class EgressLag:
    """Learns lag, its spread, and the sizes of decode and prefill rounds per endpoint."""

    def __init__(self) -> None:
        self._rounds = HostRounds()
        self._lag, self._spread = Usual(), Usual()
        self._round_gap, self._round_tail = Usual(), Usual()
        self._first = Usual()
        self._decode, self._prefill = Ring(), Ring()
        self._round_ns = np.zeros(0, dtype=np.int64)
        self._step = StepPhase()

    def update(
        self, slice_: Slice, graph: GraphRows, log: RequestLog, pieces: Pieces, usual: Array, pause_ns: Array,
        columns: dict[str, Array],
    ) -> dict[str, Array]:  # fmt: skip
        """Return the columns, float64 (endpoints,).

        `usual` float64 (endpoints,): usual chunk gap in s. `pause_ns` int64 (endpoints,): start of
        the longest common pause; `columns` holds its length.
        """
        size = len(usual)
        window_s = (slice_.end_ns - slice_.start_ns) / 1e9
        host = np.array([address for address, _ in log.endpoints[:size]], dtype=np.int64)
        fresh = self._rounds.absorb(slice_, graph)
        self._reserve(size, len(slice_.directory.addresses))
        self._learn_rounds(fresh, window_s)
        before = self._sizes(pieces, host, log, usual)
        pace = self._regularity(host)
        out = self._lags(pieces, before, _regular(pace), usual, window_s)
        out.update(pace)
        out["ingress_lag_share"] = self._ingress(pieces, host, log, usual, window_s)
        ends = pause_ns + (columns["common_pause_s"] * 1e9).astype(np.int64)
        sizes = self._pause_sizes(host, columns["pause_ratio"], pause_ns, ends)
        out["pause_size_ratio"], out["pause_decode_ratio"] = sizes
        self._learn_sizes(pieces, before[1], host, log)
        return out

    def _reserve(self, size: int, addresses: int) -> None:
        for kept in (self._lag, self._spread, self._first, self._decode, self._prefill):
            kept.reserve(size)
        self._step.reserve(size)
        addresses = min(addresses, MAX_HOSTS)
        self._round_gap.reserve(addresses)
        self._round_tail.reserve(addresses)
        self._round_ns = grow(self._round_ns, addresses, 0)

    def _learn_rounds(self, fresh: Rounds, window_s: float) -> None:
        host, end = fresh.host, fresh.end_ns
        inside = host < len(self._round_ns)
        host, end = host[inside], end[inside]
        if not len(host):
            return
        head = np.concatenate(([True], host[1:] != host[:-1]))
        before = np.where(head, self._round_ns[host], np.concatenate((end[:1], end[:-1])))
        self._round_ns[host] = end
        gap = (end - before) / 1e9
        real = (before > 0) & (gap > 0)
        self._round_gap.learn(host[real], gap[real], window_s)
        hosts = np.unique(host[real])
        self._round_tail.learn(hosts, self._round_gap.recent(hosts, 0.9, LATEST), window_s)

    def _sizes(self, pieces: Pieces, host: Array, log: RequestLog, usual: Array) -> tuple[Array, Array]:
        """Return, per piece, when its round ended (0 = unknown) and the size of the last two rounds."""
        rounds = self._rounds.recent
        at = rounds.before(host[pieces.endpoint], pieces.ts)
        if not len(rounds.host):
            return np.zeros(len(at), dtype=np.int64), np.zeros(len(at))
        end = self._step.ends(pieces, rounds, at, log, usual, self._round_gap.value[host])
        prior = np.maximum(at - 1, 0)
        pair = np.where(rounds.host[prior] == rounds.host[at], rounds.nbytes[prior], 0.0)
        return end, np.where(at >= 0, np.maximum(rounds.nbytes[at], pair), 0.0)

    def _lags(
        self, pieces: Pieces, before: tuple[Array, Array], regular: Array, usual: Array, window_s: float
    ) -> dict[str, Array]:
        size, lag = len(usual), (pieces.ts - before[0]) / 1e9
        # While rounds are irregular a "last round" may be cut short by a loss or a stop: no lags are taken.
        known = (before[0] > 0) & (pieces.gap > 0) & regular[pieces.endpoint]
        rows, values = pieces.endpoint[known], lag[known]
        self._lag.learn(rows, values, window_s)
        touched = np.unique(rows)
        spread = self._lag.recent(touched, 0.9) - self._lag.recent(touched, 0.1)
        self._spread.learn(touched, spread, window_s)
        every = np.arange(size)
        low, mid = self._lag.recent(every, 0.1), self._lag.recent(every, 0.5, LATEST)
        now = self._lag.recent(every, 0.9) - low
        standing = self._lag.known(every)
        ref = np.where(standing, self._lag.value[:size], np.nan)
        return {
            "egress_lag_s": grouped_quantile(rows, values, 0.5, size),
            "egress_lag_ref_s": ref,
            "egress_lag_share": (mid - ref) / usual,
            "egress_lag_low_share": (low - ref) / usual,
            "egress_lag_ratio": mid / ref,
            "egress_jitter_share": np.where(standing, now - self._spread.value[:size], np.nan) / usual,
        }

    def _ingress(self, pieces: Pieces, host: Array, log: RequestLog, usual: Array, window_s: float) -> Array:
        """Return the growth of the time from a request's last byte to the first round of an idle host."""
        rounds, pool = self._rounds.recent, log.pool
        row = pieces.row[pieces.gap == 0]
        row = row[pool["request_ns"][row] > 0]
        of = pool["endpoint"][row]
        came = np.maximum(pool["complete_ns"][row], pool["request_ns"][row])
        if len(rounds.host) and len(row):
            at = rounds.before(host[of], came)
            after = np.minimum(at + 1, len(rounds.host) - 1)
            known = (at >= 0) & (after > at) & (rounds.host[after] == host[of])
            quiet = (came - rounds.end_ns[at]) / 1e9 >= IDLE_STEPS * usual[of]
            took = (rounds.end_ns[after] - came) / 1e9
            good = known & quiet & (took > 0)
            self._first.learn(of[good], took[good], window_s, 0.25)
        every = np.arange(len(usual))
        grown = self._first.recent(every, 0.5, LATEST_FIRST) - self._first.value[: len(usual)]
        told = self._first.count(every) > LATEST_FIRST
        return np.where(told, np.nan_to_num(grown / usual), 0.0)

    def _regularity(self, host: Array) -> dict[str, Array]:
        known = self._round_gap.known(host)
        mid, tail = (self._round_gap.recent(host, q, LATEST) for q in (0.5, 0.9))
        return {
            "round_gap_ratio": np.where(known, mid / self._round_gap.value[host], np.nan),
            "round_gap_p90_ratio": np.where(known, tail / self._round_tail.value[host], np.nan),
        }

    def _pause_sizes(self, host: Array, ratio: Array, start: Array, end: Array) -> tuple[Array, Array]:
        """Return how far the large rounds of each pause exceed what is usual, and usual decode rounds."""
        usual = np.where(self._round_gap.known(host), 0.0, np.nan)
        decode = usual.copy()
        rows = np.flatnonzero((ratio > 1.0) & ~np.isnan(usual))
        ordinary, plain = self._usual_size(rows), self._decode.quantile(rows, 0.9)
        for n, i in enumerate(rows.tolist()):
            size = self._rounds.recent.size_within(int(host[i]), int(start[i]) + 1, int(end[i]), PAUSE_SHARE)
            usual[i] = size / ordinary[n] if ordinary[n] > 0 else 0.0
            decode[i] = size / plain[n] if plain[n] > 0 else 0.0
        return usual, decode

    def _usual_size(self, rows: Array) -> Array:
        """Return the larger of the usual decode and prefill rounds, 0 where no decode round was seen."""
        decode = np.nan_to_num(self._decode.quantile(rows, 0.9))
        seen = self._prefill.count(rows) >= MIN_PREFILLS
        prefill = np.where(seen, self._prefill.quantile(rows, 0.25), UNSEEN_PREFILL * decode)
        return np.where(decode > 0, np.maximum(decode, prefill), 0.0)

    def _learn_sizes(self, pieces: Pieces, sizes: Array, host: Array, log: RequestLog) -> None:
        """Learn decode rounds from later pieces, prefill rounds from requests that were seen to come."""
        later = (sizes > 0) & (pieces.gap > 0)
        self._decode.push(pieces.endpoint[later], sizes[later])
        pool = log.pool
        first = (pieces.gap == 0) & (pool["request_ns"][pieces.row] > 0) & ~pool["unsure"][pieces.row]
        for i in np.flatnonzero(first).tolist():
            at = pieces.endpoint[i : i + 1]
            came, ts = int(pool["request_ns"][pieces.row[i]]), int(pieces.ts[i])
            size = self._rounds.recent.size_within(int(host[at[0]]), came, ts, 0.0)
            young = self._prefill.count(at)[0] < MIN_PREFILLS
            if size > 0 and (young or size < LONG_PREFILL * self._usual_size(at)[0]):
                self._prefill.push(at, np.array([size]))


def _regular(pace: dict[str, Array]) -> Array:
    """Return whose rounds keep their pace, or are not known yet: bool (endpoints,)."""
    late = (pace["round_gap_ratio"] > REGULAR_GAP) | (pace["round_gap_p90_ratio"] > REGULAR_TAIL)
    return ~late
