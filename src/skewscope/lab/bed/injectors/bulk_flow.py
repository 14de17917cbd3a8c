"""A foreign flow between two nodes: cross traffic, bulk download or upload, a KV transfer in pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skewscope.lab.bed.injector import Injector, Undo

if TYPE_CHECKING:
    from skewscope.lab.bed.bed import Bed

GREEDY = 1e9
"""From this rate on a TCP sender sends what the path takes."""


class BulkFlow(Injector):
    """`count` flows from `src` (one node or several) to `dst`, `strength` bit/s together."""

    NAME = "bulk_flow"
    STRENGTH = "rate_bps"

    def __init__(
        self,
        bed: Bed,
        src: str | list[str],
        dst: str,
        port: int = 5201,
        udp: bool = False,
        piece_bytes: int = 65536,
        count: int = 1,
    ) -> None:
        super().__init__(bed)
        sources = [src] if isinstance(src, str) else src
        self._flows = [(f"bulk{k}", s) for k, s in enumerate(s for s in sources for _ in range(count))]
        self._dst, self._port, self._undo = dst, port, Undo()
        self._settings = {"udp": udp, "piece_bytes": piece_bytes}

    def start(self, strength: float) -> None:
        """Start all flows."""
        kind = "UDP" if self._settings["udp"] else "TCP"
        senders = ", ".join(s for _, s in self._flows)
        self.how = f"{kind} {senders} -> {self._dst} port {self._port}, {strength / 1e6:.1f} Mbit/s together"
        each = strength / len(self._flows)
        for k, (name, src) in enumerate(self._flows):
            rate = {} if each >= GREEDY and not self._settings["udp"] else {"rate_bps": each}
            self.bed.start_flow(name, src=src, dst=self._dst, port=self._port + k, **self._settings, **rate)
            self._undo.later(self.bed.stop_flow, name)

    def stop(self) -> None:
        """End all flows."""
        self._undo.now()
