"""A fault of the serving layer, switched on in a front end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skewscope.lab.bed.injector import Injector

if TYPE_CHECKING:
    from skewscope.lab.bed.bed import Bed


class FrontEnd(Injector):
    """`option` of the front end on `node` is set to `strength`; `besides` are further options."""

    NAME = "front_end"
    STRENGTH = "option"

    def __init__(self, bed: Bed, node: str, option: str, besides: dict[str, Any] | None = None) -> None:
        super().__init__(bed)
        self._node, self._option, self._besides, self._on = node, option, besides or {}, False

    def start(self, strength: float) -> None:
        """Switch it on."""
        from skewscope.lab.bed.programs.front_end import OPTIONS

        usual = {**OPTIONS, **self.bed.workload.front_end}
        self._usual = {k: usual[k] for k in (self._option, *self._besides)}
        self.how = f"{self._option} = {strength:g} in the front end on {self._node}"
        self._on = True
        self.bed.processes.tell(f"front-{self._node}", **self._besides)
        self.change(strength)

    def change(self, strength: float) -> None:
        """Set another value."""
        kind = type(self._usual[self._option])
        self.bed.processes.tell(f"front-{self._node}", **{self._option: kind(strength)})

    def stop(self) -> None:
        """Switch it off."""
        if self._on:
            self.bed.processes.tell(f"front-{self._node}", **self._usual)
            self._on = False
