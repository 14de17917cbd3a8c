"""Random loss at a switch port, by nftables. Up: behind the port's tap; down: before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skewscope.lab.bed.injector import Injector, InjectorError, Undo
from skewscope.lab.bed.system import SWITCH, inside, port

if TYPE_CHECKING:
    from skewscope.lab.bed.bed import Bed

HOOKS = {"up": ("ingress",), "down": ("egress",), "both": ("ingress", "egress")}
SCALE = 10_000


class Loss(Injector):
    """A share of `strength` of the TCP frames of a node is dropped, `way` up, down or both."""

    NAME = "loss"
    STRENGTH = "loss_ratio"

    def __init__(self, bed: Bed, node: str, way: str = "up", match: str = "ip protocol tcp") -> None:
        super().__init__(bed)
        if way not in HOOKS:
            raise InjectorError(f"loss: way is up, down or both, not {way!r}")
        self._node, self._way, self._match, self._undo = node, way, match, Undo()

    def start(self, strength: float) -> None:
        """Add a table per direction."""
        self.how = f"{strength:.2%} of frames dropped at the port of {self._node}, {self._way}"
        for hook in HOOKS[self._way]:
            table = f"loss_{self._node}_{hook}"
            # nft 1.0.6 needs a line end after an inner brace.
            rules = (
                f"table netdev {table} {{\n chain c {{\n type filter hook {hook} device "
                f'"{port(self._node)}" priority 0;\n {self._match} numgen random mod {SCALE} < '
                f"{max(1, round(strength * SCALE))} drop\n }}\n}}\n"
            )
            inside(SWITCH, "nft", "-f", "-", text=rules)
            self._undo.later(inside, SWITCH, "nft", "delete", "table", "netdev", table)

    def stop(self) -> None:
        """Remove the tables."""
        self._undo.now()
