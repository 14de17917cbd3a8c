"""A process is stopped and continued: once, in a rhythm, or to the end."""

from __future__ import annotations

import signal
from threading import Event, Thread
from typing import TYPE_CHECKING

from skewscope.lab.bed.injector import Injector

if TYPE_CHECKING:
    from skewscope.lab.bed.bed import Bed


class StopPulses(Injector):
    """`process` stops for `strength` seconds every `every_s` (0: it stays stopped until `stop`)."""

    NAME = "stop_pulses"
    STRENGTH = "stopped_s"

    def __init__(self, bed: Bed, process: str, every_s: float = 0.0) -> None:
        super().__init__(bed)
        self._process, self._every_s, self._end = process, every_s, Event()
        self._thread: Thread | None = None

    def start(self, strength: float) -> None:
        """Stop the process, or begin the rhythm."""
        self._strength = strength
        handle = self.bed.processes[self._process].handle
        handle.send_signal(signal.SIGSTOP)
        if not self._every_s:
            self.how = f"SIGSTOP of {self._process}"
            return
        self.how = (
            f"SIGSTOP of {self._process} for {strength * 1e3:.0f} ms every {self._every_s * 1e3:.0f} ms"
        )
        self._end.clear()
        self._thread = Thread(target=self._beat, daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        handle = self.bed.processes[self._process].handle
        while not self._end.wait(self._strength):
            handle.send_signal(signal.SIGCONT)
            if self._end.wait(max(0.0, self._every_s - self._strength)):
                return
            handle.send_signal(signal.SIGSTOP)

    def change(self, strength: float) -> None:
        """Let the next stop last longer or shorter."""
        self._strength = strength

    def stop(self) -> None:
        """End the rhythm and continue the process."""
        self._end.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        if self._process in self.bed.processes.names():
            self.bed.processes[self._process].handle.send_signal(signal.SIGCONT)
