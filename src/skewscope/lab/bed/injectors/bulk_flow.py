"""A foreign flow between two nodes: cross traffic, bulk download or upload, a KV transfer in pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skewscope.lab.bed.injector import Injector, Undo

if TYPE_CHECKING:
    from skewscope.lab.bed.bed import Bed

GREEDY = 1e9
"""From this rate on a TCP sender sends what the path takes."""


class BulkFlow(Injector):
    """Flows from each of `src` to each of `dst` (one node or several), `strength` bit/s together.

    With `size_bytes` they are transfers of that size every `every_s`, and the strength only says so.
    """

    NAME = "bulk_flow"
    STRENGTH = "rate_bps"

    def __init__(
        self,
        bed: Bed,
        src: str | list[str],
        dst: str | list[str],
        port: int = 5201,
        udp: bool = False,
        piece_bytes: int = 65536,
        size_bytes: int = 0,
        every_s: float = 0.0,
    ) -> None:
        super().__init__(bed)
        self._pairs = [
            (a, b)
            for a in ([src] if isinstance(src, str) else src)
            for b in ([dst] if isinstance(dst, str) else dst)
            if a != b
        ]
        self._port, self._undo = port, Undo()
        self._settings: dict[str, Any] = {"udp": udp, "piece_bytes": piece_bytes}
        self._transfers = {"size_bytes": size_bytes, "every_s": every_s} if size_bytes else {}

    def start(self, strength: float) -> None:
        """Start all flows."""
        kind = "UDP" if self._settings["udp"] else "TCP"
        pairs = ", ".join(f"{a} -> {b}" for a, b in self._pairs)
        self.how = f"{kind} {pairs}, {strength / 1e6:.1f} Mbit/s together"
        each = strength / len(self._pairs)
        rate = {} if each >= GREEDY or self._transfers else {"rate_bps": each}
        for k, (src, dst) in enumerate(self._pairs):
            more = {**self._settings, **self._transfers, **rate}
            self.bed.start_flow(f"bulk{k}", src=src, dst=dst, port=self._port + k, **more)
            self._undo.later(self.bed.stop_flow, f"bulk{k}")

    def stop(self) -> None:
        """End all flows."""
        self._undo.now()
