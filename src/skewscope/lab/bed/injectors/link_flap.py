"""A port that goes down and comes back: its frames are dropped both ways."""

from __future__ import annotations

from threading import Event, Thread
from typing import TYPE_CHECKING

from skewscope.lab.bed.injector import Injector
from skewscope.lab.bed.system import SWITCH, inside, port

if TYPE_CHECKING:
    from skewscope.lab.bed.bed import Bed

DISABLED, FORWARDING = 0, 3
"""Port states of the bridge (802.1D)."""


class LinkFlap(Injector):
    """The port of `node` is down for `strength` seconds, every `every_s`."""

    NAME = "link_flap"
    STRENGTH = "down_s"

    def __init__(self, bed: Bed, node: str, every_s: float = 60.0) -> None:
        super().__init__(bed)
        self._node, self._every_s, self._end = node, every_s, Event()
        self._thread: Thread | None = None

    def start(self, strength: float) -> None:
        """Take the port down and begin the rhythm."""
        self.how = f"port of {self._node} down for {strength * 1e3:.0f} ms every {self._every_s:.1f} s"
        self._strength = strength
        self._set(DISABLED)
        self._end.clear()
        self._thread = Thread(target=self._beat, daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        while not self._end.wait(self._strength):
            self._set(FORWARDING)
            if self._end.wait(max(0.0, self._every_s - self._strength)):
                return
            self._set(DISABLED)

    def _set(self, state: int) -> None:
        inside(SWITCH, "bridge", "link", "set", "dev", port(self._node), "state", state)

    def stop(self) -> None:
        """End the rhythm with the port up."""
        self._end.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
            self._set(FORWARDING)
