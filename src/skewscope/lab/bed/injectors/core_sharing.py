"""Processes that had cores of their own are forced onto one core and take turns there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skewscope.lab.bed.groups import pin
from skewscope.lab.bed.injector import Injector, Undo
from skewscope.lab.bed.processes import PRIORITY

if TYPE_CHECKING:
    from skewscope.lab.bed.bed import Bed


class CoreSharing(Injector):
    """`processes` share one core; each keeps it busy for `strength` of its compute time."""

    NAME = "core_sharing"
    STRENGTH = "busy_ratio"

    def __init__(self, bed: Bed, processes: list[str]) -> None:
        super().__init__(bed)
        self._processes, self._undo = processes, Undo()

    def start(self, strength: float) -> None:
        """Put all into one group on one core."""
        self.how = f"{', '.join(self._processes)} on one core, busy for {strength:.2f} of their compute time"
        group = self.bed.group("shared")
        for process in self._processes:
            pid = self.bed.processes[process].pid
            group.take(pid)
            self.bed.processes.slowed(pid)
            pin(pid, {0})
            self.bed.processes.set_rank(process, burn_ratio=min(1.0, strength))
            self._undo.later(self._free, pid)
            self._undo.later(self._calm, process)

    def _calm(self, process: str) -> None:
        self.bed.processes.set_rank(process, burn_ratio=0.0)

    def _free(self, pid: int) -> None:
        pin(pid, None)
        self.bed.group("shared").give_back(pid, PRIORITY)

    def stop(self) -> None:
        """Give all cores back."""
        self._undo.now()
