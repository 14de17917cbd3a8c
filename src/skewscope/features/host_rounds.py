"""Collective rounds as one host's own tap shows them: when each ended there and how large it was."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from skewscope.core.features import Slice
from skewscope.core.tables import Array, Table
from skewscope.features.graph import PLAIN, TAGGED, GraphRows

BROADCAST = 6
"""Gloo prefix of a broadcast: it opens a step (the tokens of the step), so it is not the round that
the step's output waits for."""

DATA_KINDS = 1
"""Gloo opcodes 0 and 1 carry data; 2 and 3 announce readiness."""

KEEP_NS = 3_000_000_000
"""Rounds kept for pauses: longer ones are judged by their last three seconds."""

MAX_KEPT = 1 << 16

TAG_MASK = (1 << 32) - 1
"""Gloo tags have 32 bits."""


@dataclass
class Rounds:
    """Rounds in order of (host, end): int64 arrays of shape (n,), bytes float64."""

    host: Array
    end_ns: Array
    nbytes: Array
    tag: Array
    """Sequence number of the collective in its group: the same on all members, without gaps."""

    def take(self, rows: Array) -> Rounds:
        """Return some of the rounds."""
        return Rounds(self.host[rows], self.end_ns[rows], self.nbytes[rows], self.tag[rows])

    def before(self, host: Array, ts_ns: Array) -> Array:
        """Return the index of each host's last round that ended at or before its time, -1 = none."""
        if not len(self.host):
            return np.full(len(host), -1, dtype=np.int64)
        low = min(int(self.end_ns.min()), int(ts_ns.min()) if len(ts_ns) else 0)
        key = (self.host << 40) + ((self.end_ns - low) >> 7)  # 128 ns steps: 2**40 of them are 39 hours
        at = np.searchsorted(key, (host << 40) + ((ts_ns - low) >> 7), side="right") - 1
        return np.where((at >= 0) & (self.host[np.maximum(at, 0)] == host), at, -1)

    def ends_of(self, host: Array, tag: Array) -> Array:
        """Return when the round of a sequence number ended at a host, int64 (n,), 0 = not among these."""
        if not len(self.host):
            return np.zeros(len(host), dtype=np.int64)
        key = (self.host << 34) + (self.tag & TAG_MASK)
        order = np.argsort(key, kind="stable")
        wanted = (host << 34) + (tag & TAG_MASK)
        at = np.minimum(np.searchsorted(key[order], wanted, side="right"), len(key)) - 1
        found = (at >= 0) & (key[order][np.maximum(at, 0)] == wanted)
        return np.where(found, self.end_ns[order][np.maximum(at, 0)], 0)

    def size_within(self, host: int, start_ns: int, end_ns: int, share: float) -> float:
        """Return the size that `share` of a host's rounds ended within [start, end] reach, 0 = none ran."""
        inside = (self.host == host) & (self.end_ns >= start_ns) & (self.end_ns <= end_ns)
        sizes = np.sort(self.nbytes[inside])[::-1]
        return float(sizes[max(int(np.ceil(share * len(sizes))), 1) - 1]) if len(sizes) else 0.0


class HostRounds:
    """Keeps the last seconds of rounds of every host."""

    def __init__(self) -> None:
        self.recent = _no_rounds()

    def absorb(self, slice_: Slice, graph: GraphRows) -> Rounds:
        """Take one slice; return its rounds. A round cut by the slice's edge gives two rows."""
        messages = slice_.tables["messages"]
        data = (messages["kind"] <= DATA_KINDS) & (messages["collective"] != BROADCAST)
        data &= messages["framing"] == TAGGED  # others do not say where a round ends
        data &= messages["collective"] != PLAIN  # neither do sends that are no collective
        new = _rounds(messages.take(data), graph)
        old = self.recent
        joined = Rounds(
            np.concatenate((old.host, new.host)),
            np.concatenate((old.end_ns, new.end_ns)),
            np.concatenate((old.nbytes, new.nbytes)),
            np.concatenate((old.tag, new.tag)),
        )
        kept = np.flatnonzero(joined.end_ns >= slice_.end_ns - KEEP_NS)[-MAX_KEPT:]
        joined = joined.take(kept)
        self.recent = joined.take(np.lexsort((joined.end_ns, joined.host)))
        return new


def _no_rounds() -> Rounds:
    none = np.zeros(0, dtype=np.int64)
    return Rounds(none, none, np.zeros(0), none)


def _rounds(messages: Table, graph: GraphRows) -> Rounds:
    flow, way, tap = messages["flow"].astype(np.int64), messages["way"].astype(np.int64), messages["tap"]
    sent = graph.vantage[flow, way] == tap
    received = graph.vantage[flow, 1 - way] == tap
    host = np.concatenate((messages["src"][sent], messages["dst"][received])).astype(np.int64)
    if not len(host):
        return _no_rounds()
    rows = np.concatenate((np.flatnonzero(sent), np.flatnonzero(received)))
    end = np.maximum(messages["ts_ns"], messages["end_ns"])[rows]
    kind, tag = (messages[n].astype(np.int64)[rows] for n in ("collective", "tag"))
    key = (host << 40) + (kind << 32) + tag
    unique, inverse = np.unique(key, return_inverse=True)
    last = np.zeros(len(unique), dtype=np.int64)
    size = np.zeros(len(unique))
    np.maximum.at(last, inverse, end)
    np.maximum.at(size, inverse, messages["nbytes"][rows].astype(np.float64))
    found = Rounds(unique >> 40, last, size, unique & TAG_MASK)
    return found.take(np.lexsort((found.end_ns, found.host)))
