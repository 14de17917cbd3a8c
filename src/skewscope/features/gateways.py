"""What a gateway does between its two legs: which request became which, what it holds back, who queues.

A gateway serves clients and asks engines. Requests towards an engine are matched with those that came
in, oldest first, those of equal length before others; then both legs of a stream are compared. Times of
one leg are never compared with times of the other, which may be seen at taps with other clocks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from statistics import median
from typing import cast

import numpy as np

from skewscope.core.features import FeatureColumn, FeatureRows, FeatureSpec, Slice
from skewscope.core.tables import Array
from skewscope.features.streams import EndpointRows, inference

RECENT = 10
"""Windows over which the state of a gateway is averaged: one second, several flushes of any buffer."""

WAITED_NS = 20_000_000
"""A request that a gateway has had for as long and not passed on waits: passing on takes a millisecond."""

MIN_WHOLE, MAX_WHOLE = 3, 16
"""Whole streams after which the ratio of the legs' bytes is known (chunk framing differs, TLS is larger), and
the latest ones that it is the median of."""

MAX_GATEWAYS = 1024
MAX_WAITING = 1 << 14
MAX_UNCLAIMED = 1 << 10
"""Requests to engines that no client explains: the gateway asks for itself, or its clients are not seen."""

COLUMNS = {
    "streams": FeatureColumn("1", "streams that have begun on their engine's leg and are open"),
    "held_share": FeatureColumn("1", "share of them of which a piece or more is held back, over a second"),
    "held_chunks": FeatureColumn("1", "pieces held back of such a stream, over a second"),
    "held_s": FeatureColumn("s", "the same in time: pieces held times the engines' gap between pieces"),
    "queued": FeatureColumn("1", "requests in full that were not passed on, over a second"),
    "queued_min": FeatureColumn("1", "least number of them at the windows' ends of that second"),
    "upstream": FeatureColumn("1", "requests that it has open at engines"),
    "plateau": FeatureColumn("1", "least over largest number of those at the windows' ends of a second"),
}


@dataclass
class _Gateway:
    """What is known of one gateway; rows are those of the request log's pool."""

    waiting: dict[int, None] = field(default_factory=dict)
    unclaimed: dict[int, None] = field(default_factory=dict)
    ratios: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_WHOLE))
    """Bytes to clients over bytes from engines, of the latest whole streams."""
    recent: deque[tuple[float, float, float, float]] = field(default_factory=lambda: deque(maxlen=RECENT))
    """Held share, held pieces, queued requests, open upstream requests at each window's end."""
    held_ns: int = 0
    queued_ns: int = 0

    @property
    def ratio(self) -> float:
        """Median of the ratios, NaN until enough are known."""
        return median(self.ratios) if len(self.ratios) >= MIN_WHOLE else float("nan")


class Gateways:
    """Pairs of legs per gateway."""

    SPEC = FeatureSpec("gateway", "an address that serves clients by asking engines", COLUMNS)
    NEEDS: Sequence[str] = ("endpoint",)

    def __init__(self) -> None:
        self._gateways: dict[int, _Gateway] = {}
        self._pairs = np.zeros((0, 3), dtype=np.int64)
        """Address of the gateway, pool rows of the client's and of the engine's leg."""

    def update(self, slice_: Slice, others: Mapping[str, FeatureRows]) -> FeatureRows:
        """Absorb one slice."""
        rows = cast(EndpointRows, others["endpoint"])
        self._match(rows, slice_.end_ns)
        open_ = rows.pool["open"]
        held = self._held(rows)
        self._learn_ratio(rows)
        keys, found = [], []
        onset: dict[str, list[int]] = {"held_share": [], "queued": []}
        gap_s = _gap_s(rows)
        for address, gateway in sorted(self._gateways.items()):
            mine = self._pairs[:, 0] == address
            self._note(gateway, rows, slice_, held[mine], int(np.count_nonzero(open_[self._pairs[mine, 2]])))
            backends = np.unique(rows.pool["endpoint"][self._pairs[mine, 2]])
            keys.append(slice_.directory.addresses[address])
            found.append(self._row(gateway, held[mine], gap_s[backends]))
            onset["held_share"].append(gateway.held_ns)
            onset["queued"].append(gateway.queued_ns)
        self._forget(rows)
        columns = {n: np.array([row[n] for row in found], dtype=np.float64) for n in COLUMNS}
        dated = {n: np.array(v, dtype=np.int64) for n, v in onset.items()}
        return FeatureRows("gateway", keys, columns, dated)

    def _match(self, rows: EndpointRows, end_ns: int) -> None:
        """Match new requests to engines with those that came in."""
        pool, arrived = rows.pool, rows.arrived
        arrived = arrived[inference(pool)[arrived]]
        serves = np.array([a for a, _ in rows.endpoints], dtype=np.int64)
        server = serves[pool["endpoint"][arrived]]
        asks = np.isin(pool["client"][arrived], serves)
        for address in np.unique(pool["client"][arrived[asks]]).tolist():
            if len(self._gateways) < MAX_GATEWAYS:
                self._gateways.setdefault(address, _Gateway())
        order = np.argsort(pool["request_ns"][arrived], kind="stable")
        for row, address, client in zip(
            arrived[order].tolist(),
            server[order].tolist(),
            pool["client"][arrived[order]].tolist(),
            strict=True,
        ):
            if address in self._gateways and len(self._gateways[address].waiting) < MAX_WAITING:
                self._gateways[address].waiting[row] = None
            if client in self._gateways and len(self._gateways[client].unclaimed) < MAX_UNCLAIMED:
                self._gateways[client].unclaimed[row] = None
        fresh = [
            (address, mine, engine)
            for address, gateway in self._gateways.items()
            for engine in list(gateway.unclaimed)
            if (mine := self._claim(gateway, engine, pool)) >= 0
        ]
        if fresh:
            self._pairs = np.concatenate([self._pairs, np.array(fresh, dtype=np.int64)])

    @staticmethod
    def _claim(gateway: _Gateway, engine: int, pool: Mapping[str, Array]) -> int:
        """Return the client's request that became this one to an engine, -1 where none is known."""
        if not gateway.waiting:
            return -1
        size = _size(pool, engine)
        same = (row for row in gateway.waiting if _size(pool, row) == size)
        mine = next(same, next(iter(gateway.waiting)))
        del gateway.waiting[mine], gateway.unclaimed[engine]
        return mine

    def _held(self, rows: EndpointRows) -> Array:
        """Return the pieces held back of each pair: float64 (pairs,), NaN where nothing has begun."""
        pool = rows.pool
        mine, engine = self._pairs[:, 1], self._pairs[:, 2]
        ratio = np.array([self._gateways[g].ratio for g in self._pairs[:, 0].tolist()])
        piece = pool["egress_bytes"][engine] / np.maximum(pool["chunks"][engine], 1)
        behind = pool["egress_bytes"][engine] - pool["egress_bytes"][mine] / ratio
        begun = (pool["first_ns"][engine] > 0) & pool["open"][engine] & pool["open"][mine]
        return np.where(begun & (piece > 0), np.maximum(behind, 0.0) / np.maximum(piece, 1.0), np.nan)

    def _learn_ratio(self, rows: EndpointRows) -> None:
        pool = rows.pool
        mine, engine = self._pairs[:, 1], self._pairs[:, 2]
        whole = ~(pool["open"][mine] | pool["open"][engine] | pool["aborted"][mine])
        whole &= pool["egress_bytes"][mine] > 0
        for i in np.flatnonzero(whole & (pool["egress_bytes"][engine] > 0)).tolist():
            ratio = pool["egress_bytes"][mine[i]] / pool["egress_bytes"][engine[i]]
            self._gateways[int(self._pairs[i, 0])].ratios.append(float(ratio))

    def _note(self, gateway: _Gateway, rows: EndpointRows, slice_: Slice, held: Array, upstream: int) -> None:
        pool = rows.pool
        waiting = [r for r in gateway.waiting if pool["open"][r] and pool["first_ns"][r] == 0]
        since = [int(max(pool["complete_ns"][r], pool["request_ns"][r])) for r in waiting]
        queued = [ns for ns in since if slice_.end_ns - ns > WAITED_NS]
        known = held[np.isfinite(held)]
        share = float((known >= 1.0).mean()) if len(known) else float("nan")
        pieces = float(known.mean()) if len(known) else float("nan")
        gateway.recent.append((share, pieces, float(len(queued)), float(upstream)))
        if not isfinite(share) or share < 0.5:
            gateway.held_ns = gateway.held_ns if not isfinite(share) else 0
        elif not gateway.held_ns:
            gateway.held_ns = slice_.start_ns
        if not queued:
            gateway.queued_ns = 0
        elif not gateway.queued_ns:
            gateway.queued_ns = min(queued)

    @staticmethod
    def _row(gateway: _Gateway, held: Array, gap_s: Array) -> dict[str, float]:
        recent = np.array(gateway.recent)
        told = recent[np.isfinite(recent[:, 0])]
        pieces = float(told[:, 1].mean()) if len(told) else float("nan")
        known = gap_s[np.isfinite(gap_s)]
        most = float(recent[:, 3].max())
        return {
            "streams": float(np.isfinite(held).sum()),
            "held_share": float(told[:, 0].mean()) if len(told) else float("nan"),
            "held_chunks": pieces,
            "held_s": pieces * float(np.median(known)) if len(known) else float("nan"),
            "queued": float(recent[:, 2].mean()),
            "queued_min": float(recent[:, 2].min()),
            "upstream": float(recent[-1, 3]),
            "plateau": float(recent[:, 3].min() / most) if most > 0 else 0.0,
        }

    def _forget(self, rows: EndpointRows) -> None:
        """Drop what has ended: its pool rows are given away after this window."""
        open_ = rows.pool["open"]
        self._pairs = self._pairs[open_[self._pairs[:, 2]] & open_[self._pairs[:, 1]]]
        begun = rows.pool["first_ns"] > 0
        for gateway in self._gateways.values():
            for kept in (gateway.waiting, gateway.unclaimed):
                # Who was answered did not wait: its other leg is not seen, or was there before the capture.
                for row in [r for r in kept if begun[r] or not open_[r]]:
                    del kept[row]


def _size(pool: Mapping[str, Array], row: int) -> int:
    return int(max(pool["expected_bytes"][row], pool["request_bytes"][row]))


def _gap_s(rows: EndpointRows) -> Array:
    """Return the usual gap between pieces of each endpoint (s): float64 (endpoints,)."""
    out = np.full(len(rows.endpoints), np.nan)
    out[rows.ids] = rows.columns["chunk_gap_ref_s"]
    return out


FEATURE = Gateways
