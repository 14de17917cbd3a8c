"""A slow port towards a node: a token bucket with a queue of its own. A long queue is bufferbloat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skewscope.lab.bed.injector import Injector, Undo
from skewscope.lab.bed.system import SWITCH, inside, port

if TYPE_CHECKING:
    from skewscope.lab.bed.bed import Bed


class RateLimit(Injector):
    """The port towards `node` serves `strength` bit/s; it queues `queue_bytes`."""

    NAME = "rate_limit"
    STRENGTH = "rate_bps"

    def __init__(self, bed: Bed, node: str, queue_bytes: int = 40_000, burst_bytes: int = 8_000) -> None:
        super().__init__(bed)
        self._node, self._queue, self._burst, self._undo = node, queue_bytes, burst_bytes, Undo()

    def start(self, strength: float) -> None:
        """Put a token bucket at the port."""
        self.how = f"{strength / 1e6:.2f} Mbit/s towards {self._node}, queue of {self._queue} bytes"
        self._tc("add", strength)
        self._undo.later(inside, SWITCH, "tc", "qdisc", "del", "dev", port(self._node), "root")

    def change(self, strength: float) -> None:
        """Set another rate; what is queued stays."""
        self._tc("change", strength)

    def _tc(self, verb: str, strength: float) -> None:
        inside(
            SWITCH, "tc", "qdisc", verb, "dev", port(self._node), "root", "tbf",
            "rate", f"{round(strength)}bit", "burst", f"{self._burst}b", "limit", f"{self._queue}b",
        )  # fmt: skip

    def stop(self) -> None:
        """Remove the bucket."""
        self._undo.now()
