"""Hand-made RoCE packets: queue pairs that WRITE, READ and SEND, with losses and retransmissions."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from skewscope.core.schemas import ROCE
from skewscope.core.tables import Table

US = 1_000
START = 1_700_000_000_000_000_000
A, B, C = 1, 2, 3
SEND, WRITE, READ_REQUEST, READ, ACK = "send", "write", 0x0C, "read", 0x11
FIRST_MIDDLE_LAST_ONLY = {SEND: (0, 1, 2, 4), WRITE: (6, 7, 8, 10), READ: (13, 14, 15, 16)}


@dataclass
class Wire:
    """Collects rows in capture order; `us` is the clock, each packet takes one microsecond."""

    us: int = 0
    mtu: int = 1024
    rows: list[dict[str, int]] = field(default_factory=list)
    psn: dict[tuple[int, int, int], int] = field(default_factory=dict)

    def packet(self, opcode: int, src: int, dst: int, qp: int, psn: int, size: int = 0, **more: int) -> None:
        """Add one packet."""
        self.us += 1
        self.rows.append(
            {
                "ts_ns": START + self.us * US,
                "frame": len(self.rows) + 1,
                "flow": src * 16 + dst,
                "src": src,
                "dst": dst,
                "opcode": opcode,
                "qp": qp,
                "psn": psn & 0xFFFFFF,
                "payload_bytes": size,
                **more,
            }
        )

    def message(
        self, kind: str, src: int, dst: int, qp: int, size: int, immediate: int | None = None
    ) -> list[dict[str, int]]:
        """Send a message in packets of the MTU; returns its rows."""
        first, middle, last, only = FIRST_MIDDLE_LAST_ONLY[kind]
        pieces = [min(self.mtu, size - at) for at in range(0, size, self.mtu)] or [0]
        start = len(self.rows)
        for n, piece in enumerate(pieces):
            op = only if len(pieces) == 1 else first if n == 0 else last if n == len(pieces) - 1 else middle
            more = {}
            if immediate is not None and n == len(pieces) - 1:
                op, more = op + 1, {"immediate": immediate, "has": 4}
            key = (src, dst, qp + (1 << 24 if kind == READ else 0))
            psn = self.psn.get(key, 0)
            self.psn[key] = psn + 1
            self.packet(op, src, dst, qp, psn, piece, **more)
        return self.rows[start:]

    def clear(self, src: int, dst: int, qp: int, size: int = 64) -> None:
        """The receiver of data, src, clears its sender, dst."""
        self.message(WRITE, src, dst, qp, size)

    def data(self, src: int, dst: int, qp: int, size: int) -> list[dict[str, int]]:
        """Send data as NCCL does."""
        return self.message(WRITE, src, dst, qp, size, size)

    def nak(self, src: int, dst: int, qp: int, psn: int) -> None:
        """The receiver, src, misses packet `psn`."""
        self.packet(ACK, src, dst, qp, psn, syndrome=0x60)

    def table(self) -> Table:
        """Return the rows."""
        return Table(
            ROCE,
            {n: np.array([r.get(n, 0) for r in self.rows], dtype=c.dtype) for n, c in ROCE.columns.items()},
        )
