"""The receiver of a bulk flow stops reading: its window closes, the sender waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skewscope.lab.bed.injector import Injector

if TYPE_CHECKING:
    from skewscope.lab.bed.bed import Bed


class ReaderStops(Injector):
    """The receiver of `flow` does not read (strength 1)."""

    NAME = "reader_stops"
    STRENGTH = "stopped"

    def __init__(self, bed: Bed, flow: str) -> None:
        super().__init__(bed)
        self._flow = flow

    def start(self, strength: float) -> None:
        """Stop reading."""
        self.how = f"the receiver of the flow {self._flow} stops reading"
        self.bed.processes.tell(f"{self._flow}-to", stop=True)

    def stop(self) -> None:
        """Read again."""
        self.bed.processes.tell(f"{self._flow}-to", stop=False)
