"""Counts of RoCE and InfiniBand packets by tap, for `skewscope inspect`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np

from skewscope.core.directory import Directory
from skewscope.core.report import Edge
from skewscope.core.tables import Array, Table
from skewscope.wire import icrc
from skewscope.wire.packets import PacketParser, Parsed
from skewscope.wire.roce_codes import (
    ACKNOWLEDGE,
    AETH,
    ATOMIC_ACK,
    CNP,
    HEADERS,
    NAK_KIND,
    READ_REQUEST,
    RNR_KIND,
    SEND_LAST_INV,
    SEND_ONLY_INV,
    WRITE_FIRST,
)

MAX_QUEUE_PAIRS = 65_536
MAX_HOST_PAIRS = 16_384
CUT = 1
"""Faults up to this one leave a packet RoCE."""

_CRC_NAMES = {icrc.RIGHT: "icrc_right", icrc.WRONG: "icrc_wrong", icrc.UNKNOWN: "icrc_unknown"}


def _kinds() -> dict[str, Array]:
    """Return which opcodes count as which kind of packet, bool (256,) each."""
    codes = np.arange(256)
    operation, known = codes & 31, (HEADERS != 0) & (codes != CNP)
    send = (operation < WRITE_FIRST) | (operation == SEND_LAST_INV) | (operation == SEND_ONLY_INV)
    return {
        "sends": known & send,
        "writes": known & (operation >= WRITE_FIRST) & (operation < READ_REQUEST),
        "reads": known & (operation >= READ_REQUEST) & (operation < ACKNOWLEDGE),
        "atomics": known & (operation >= ATOMIC_ACK) & ~send,
        "cnps": codes == CNP,
    }


_KINDS = _kinds()


class RoceTally:
    """Counts by tap index. `counts` gives those of some taps together; `checked`: CRCs count too."""

    def __init__(self, checked: bool = False) -> None:
        self._checked = checked
        self._counts: dict[int, Counter[str]] = {}
        self._pairs: dict[int, set[int]] = {}
        self._traffic: dict[int, tuple[int, int]] = {}
        """Lower and higher address id, packed: (payload bytes, packets)."""

    def add(self, roce: Table) -> None:
        """Count rows of any taps."""
        if len(roce):
            self._add_traffic(roce.take(roce["fault"] <= CUT))
        for tap in np.unique(roce["tap"]).tolist():
            self._add(tap, roce.take(roce["tap"] == tap))

    def _add_traffic(self, roce: Table) -> None:
        low, high = np.minimum(roce["src"], roce["dst"]), np.maximum(roce["src"], roce["dst"])
        keys, at, packets = np.unique(
            low.astype(np.int64) << 32 | high, return_inverse=True, return_counts=True
        )
        size = np.bincount(at, weights=roce["payload_bytes"], minlength=len(keys)).astype(np.int64)
        for key, nbytes, count in zip(keys.tolist(), size.tolist(), packets.tolist(), strict=True):
            if key in self._traffic or len(self._traffic) < MAX_HOST_PAIRS:
                known = self._traffic.get(key, (0, 0))
                self._traffic[key] = known[0] + nbytes, known[1] + count

    def edges(self, edges: list[Edge], directory: Directory) -> list[Edge]:
        """Return the edges with those that carry RDMA called so, and those added that IP knows nothing of."""
        names = directory.addresses
        rdma = {(names[key >> 32], names[key & 0xFFFFFFFF]): sums for key, sums in self._traffic.items()}
        known = {(e.a, e.b) for e in edges}
        out = [replace(e, kind="rdma") if e.kind == "other" and (e.a, e.b) in rdma else e for e in edges]
        return out + [Edge(a, b, "rdma", *sums) for (a, b), sums in rdma.items() if (a, b) not in known]

    def _add(self, tap: int, roce: Table) -> None:
        count = self._counts.setdefault(tap, Counter())
        good = roce["fault"] <= CUT
        read = good & (roce["pkey"] > 0)  # 0 is no partition: the base header was cut off
        opcodes = np.bincount(roce["opcode"][read], minlength=256)
        for name, codes in _KINDS.items():
            count[name] += int(opcodes[codes].sum())
        kind = np.where(roce["has"] & AETH, roce["syndrome"] >> 5, 255)
        answers = good & ((roce["opcode"] & 31) == ACKNOWLEDGE)
        count["acks"] += int(np.count_nonzero(answers & (kind == 0)))
        count["naks"] += int(np.count_nonzero(answers & (kind == NAK_KIND)))
        count["rnr_naks"] += int(np.count_nonzero(answers & (kind == RNR_KIND)))
        count["marked"] += int(np.count_nonzero(good & (roce["ecn"] == 3)))
        count["packets"] += int(np.count_nonzero(good))
        count["not_roce"] += int(np.count_nonzero(~good))
        count["cut"] += int(np.count_nonzero(roce["fault"] == CUT))
        pairs = self._pairs.setdefault(tap, set())
        if len(pairs) < MAX_QUEUE_PAIRS:
            ends = roce["dst"][good].astype(np.uint64) << np.uint64(24) | roce["qp"][good].astype(np.uint64)
            pairs.update(np.unique(ends).tolist())
        for code, name in _CRC_NAMES.items() if self._checked else ():
            count[name] += int(np.count_nonzero(good & (roce["icrc"] == code)))

    def counts(self, taps: list[int]) -> dict[str, int]:
        """Return the counts of some taps together, empty where they saw nothing on RoCE's port."""
        total: Counter[str] = Counter()
        pairs: set[int] = set()
        for tap in taps:
            total.update(self._counts.get(tap, {}))
            pairs |= self._pairs.get(tap, set())
        return {"queue_pairs": len(pairs), **total} if total else {}


class CheckingParser(PacketParser):
    """A packet parser that fills the `icrc` column of the `roce` table: every payload byte is read."""

    def parse(self, buf: Array, *args: Any, **kwargs: Any) -> Parsed:
        """Parse as PacketParser does."""
        parsed = super().parse(buf, *args, **kwargs)
        if len(parsed.roce):
            parsed.roce["icrc"][:] = icrc.verify(buf, parsed.packets)
        return parsed
