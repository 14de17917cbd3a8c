"""Busy neighbours: processes that only compute, in the same group and on the same core as the victims."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from skewscope.lab.bed.groups import pin
from skewscope.lab.bed.injector import Injector, Undo

if TYPE_CHECKING:
    from skewscope.lab.bed.bed import Bed

LOOP = "while True: pass"


class CpuHog(Injector):
    """`strength` busy loops share core `cpu` with `processes`."""

    NAME = "cpu_hog"
    STRENGTH = "hog_count"

    def __init__(self, bed: Bed, processes: list[str], cpu: int = 0) -> None:
        super().__init__(bed)
        self._processes, self._cpu, self._undo = processes, cpu % (os.cpu_count() or 1), Undo()

    def start(self, strength: float) -> None:
        """Pin the victims and start the neighbours."""
        count = max(1, round(strength))
        self.how = f"{count} busy loops on the core of {', '.join(self._processes)}"
        for process in self._processes:
            child = self.bed.processes[process]
            self._undo.later(self.bed.demote(process))
            pin(child.pid, {self._cpu})
            self._undo.later(pin, child.pid, None)
            for k in range(count):
                name = f"hog-{process}-{k}"
                hog = self.bed.processes.start(
                    name, child.node, [sys.executable, "-c", LOOP], priority=0, cpu=self._cpu
                )
                self._undo.later(self.bed.processes.stop, name)
                self.bed.group(process).take(hog.pid)

    def stop(self) -> None:
        """End the neighbours; the victims run as before."""
        self._undo.now()
