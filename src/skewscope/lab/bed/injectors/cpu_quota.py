"""A processor quota on one process: its share used, the kernel stops it for the rest of each 100 ms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skewscope.lab.bed.injector import Injector, Undo

if TYPE_CHECKING:
    from skewscope.lab.bed.bed import Bed


class CpuQuota(Injector):
    """`process` gets `strength` of one core."""

    NAME = "cpu_quota"
    STRENGTH = "cpu_quota_ratio"

    def __init__(self, bed: Bed, process: str) -> None:
        super().__init__(bed)
        self._process, self._undo = process, Undo()

    def start(self, strength: float) -> None:
        """Move the process into its group and limit the group."""
        self._undo.later(self.bed.demote(self._process))
        self.change(strength)
        self.how = f"quota of {strength:.3f} of a core on {self._process}"

    def change(self, strength: float) -> None:
        """Set another quota."""
        self.bed.group(self._process).quota(strength)

    def stop(self) -> None:
        """Lift the quota."""
        self._undo.now()
