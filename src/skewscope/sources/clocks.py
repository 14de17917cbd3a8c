"""Whether the clocks of several captures agree, told from packets that more than one of them holds.

Each tap keeps the packets with the smallest hashes of (flow, direction, sequence number, TCP timestamp).
The hash is the same wherever a packet is seen, so the samples of two taps meet in what both saw, wherever
in the captures that is: a bottom-k sketch (Cohen and Kaplan, PODC 2007). Memory: KEPT rows a tap.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from skewscope.core.directory import Directory
from skewscope.core.tables import Array, Table
from skewscope.wire.jit import njit

KEPT = 4096
MATCHES = 8
"""Shared packets needed for a statement."""
TOLERANCE_NS = 1_000_000_000
"""A queue delays a packet by less; clocks kept by NTP differ by less."""


@njit
def _sample(flow: Array, way: Array, seq: Array, tsval: Array, payload: Array, limit: int, out: Array) -> int:
    """Write hash and row of the TCP data rows with hashes below `limit` to out int64 (n, 2); count them."""
    n = 0
    for i in range(len(flow)):
        if flow[i] == 0 or payload[i] == 0:
            continue
        h = (np.uint64(flow[i]) << np.uint64(33)) | (np.uint64(way[i]) << np.uint64(32)) | np.uint64(seq[i])
        h = (h ^ (np.uint64(tsval[i]) << np.uint64(20))) * np.uint64(0x9E3779B97F4A7C15)
        h = (h ^ (h >> np.uint64(32))) * np.uint64(0xC2B2AE3D27D4EB4F)
        key = np.int64(h >> np.uint64(1))
        if key < limit:
            out[n, 0] = key
            out[n, 1] = i
            n += 1
    return n


class Clocks:
    """Collects samples of all taps of a run; `notes` compares them."""

    def __init__(self) -> None:
        self._keys: dict[int, Array] = {}
        self._times: dict[int, Array] = {}

    def feed(self, packets: Table) -> None:
        """Take a `packets` table of one or several taps of a file."""
        taps = packets["tap"]
        if len(taps) and taps.min() == taps.max():
            self._feed(int(taps[0]), packets)
            return
        for tap in np.unique(taps):
            self._feed(int(tap), packets.take(np.flatnonzero(taps == tap)))

    def _feed(self, tap: int, packets: Table) -> None:
        keys = self._keys.get(tap, np.zeros(0, dtype=np.int64))
        limit = int(keys[-1]) if len(keys) >= KEPT else np.iinfo(np.int64).max
        tcp = np.where(packets["proto"] == 6, packets["payload_bytes"], 0)
        out = np.empty((len(packets), 2), dtype=np.int64)
        columns = (packets["flow"], packets["way"], packets["seq"], packets["tsval"], tcp)
        with np.errstate(over="ignore"):  # the hash wraps; only uncompiled code would say so
            found = out[: _sample(*columns, limit, out)]
        if not len(found):
            return
        times = np.concatenate(
            [self._times.get(tap, np.zeros(0, dtype=np.int64)), packets["ts_ns"][found[:, 1]]]
        )
        # The first time of a packet counts: later ones are copies sent again.
        keys, first = np.unique(np.concatenate([keys, found[:, 0]]), return_index=True)
        self._keys[tap], self._times[tap] = keys[:KEPT], times[first[:KEPT]]

    def offsets(self) -> dict[int, tuple[int, int]]:
        """Return tap -> (tap compared with, ns by which its clock is ahead), for all that can be compared.

        Within each set of taps that share packets, all are compared with the lowest one.
        """
        links = self._links()
        out: dict[int, tuple[int, int]] = {}
        for start in sorted(links):
            if start in out:
                continue
            out[start] = (start, 0)
            waiting = deque([start])
            while waiting:
                here = waiting.popleft()
                for there, ahead in sorted(links[here].items()):
                    if there not in out:
                        out[there] = (start, out[here][1] + ahead)
                        waiting.append(there)
        return out

    def _links(self) -> dict[int, dict[int, int]]:
        """Return tap -> tap -> median ns by which the second one's times are later."""
        taps = sorted(self._keys)
        links: dict[int, dict[int, int]] = {}
        if len(taps) < 2:
            return links
        key = np.concatenate([self._keys[t] for t in taps])
        time = np.concatenate([self._times[t] for t in taps])
        tap = np.repeat(taps, [len(self._keys[t]) for t in taps])
        order = np.argsort(key, kind="stable")  # within a key: by tap
        key, time, tap = key[order], time[order], tap[order]
        at = np.flatnonzero(key[1:] == key[:-1])
        pair = tap[at] * (1 << 16) + tap[at + 1]
        for one in np.unique(pair):
            ahead = (time[at + 1] - time[at])[pair == one]
            if len(ahead) >= MATCHES:
                a, b, middle = int(one) >> 16, int(one) & 0xFFFF, int(np.median(ahead))
                links.setdefault(a, {})[b] = middle
                links.setdefault(b, {})[a] = -middle
        return links

    def notes(self, directory: Directory) -> list[str]:
        """Return one sentence about each tap whose clock is off by more than TOLERANCE_NS."""
        offsets = self.offsets()
        out = []
        for root in sorted({r for r, _ in offsets.values()}):
            ahead = {t: o for t, (r, o) in offsets.items() if r == root}
            # Most clocks are right: the middle one is the reference, of two the one given first.
            ranked = sorted(ahead, key=lambda t: (ahead[t], t))
            reference = min(ranked[(len(ahead) - 1) // 2], ranked[len(ahead) // 2])
            for tap in sorted(ahead):
                difference = ahead[tap] - ahead[reference]
                if abs(difference) > TOLERANCE_NS:
                    way = "ahead of" if difference > 0 else "behind"
                    this, other = directory.taps[tap].path, directory.taps[reference].path
                    out.append(
                        f"The clock of {this} is {abs(difference) / 1e9:,.1f} s {way} that of {other}, by "
                        "packets that both hold: what happened at both cannot be put in order."
                    )
        return out
