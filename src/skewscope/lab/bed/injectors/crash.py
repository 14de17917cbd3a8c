"""A process is killed and does not come back."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from skewscope.lab.bed.injector import Injector

if TYPE_CHECKING:
    from skewscope.lab.bed.bed import Bed


class Crash(Injector):
    """`process` gets SIGKILL (strength 1)."""

    NAME = "crash"
    STRENGTH = "killed"

    def __init__(self, bed: Bed, process: str) -> None:
        super().__init__(bed)
        self._process = process

    def start(self, strength: float) -> None:
        """Kill it."""
        self.how = f"SIGKILL of {self._process}"
        self.bed.processes[self._process].handle.send_signal(signal.SIGKILL)

    def stop(self) -> None:
        """Nothing: what is dead stays dead until the bed is taken down."""
