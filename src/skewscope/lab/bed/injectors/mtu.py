"""An MTU that differs: the port of one node silently drops frames that all others let pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skewscope.lab.bed.injector import Injector, Undo
from skewscope.lab.bed.system import SWITCH, inside, port

if TYPE_CHECKING:
    from skewscope.lab.bed.bed import Bed


class Mtu(Injector):
    """The port of `node` passes `strength` bytes at most."""

    NAME = "mtu"
    STRENGTH = "mtu_bytes"

    def __init__(self, bed: Bed, node: str) -> None:
        super().__init__(bed)
        self._node, self._undo = node, Undo()

    def start(self, strength: float) -> None:
        """Set the port's MTU."""
        usual = self.bed.topology.mtu
        self.how = f"MTU {strength:.0f} at the port of {self._node}, {usual} elsewhere"
        inside(SWITCH, "ip", "link", "set", port(self._node), "mtu", round(strength))
        self._undo.later(inside, SWITCH, "ip", "link", "set", port(self._node), "mtu", usual)

    def stop(self) -> None:
        """Set it back."""
        self._undo.now()
