"""A bulk flow that ran from the start goes on in another way: slower, in tiny pieces, after a pause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skewscope.lab.bed.injector import Injector

if TYPE_CHECKING:
    from skewscope.lab.bed.bed import Bed

WHOLE = ("piece_bytes", "size_bytes")


class FlowChange(Injector):
    """`option` of the flow `flow` becomes `strength`, `besides` are further changes."""

    NAME = "flow_change"
    STRENGTH = "option"

    def __init__(self, bed: Bed, flow: str, option: str, besides: dict[str, Any] | None = None) -> None:
        super().__init__(bed)
        self._flow, self._option, self._besides, self._on = flow, option, besides or {}, False

    def start(self, strength: float) -> None:
        """Restart the flow with the changes."""
        value = round(strength) if self._option in WHOLE else strength
        self.how = f"flow {self._flow} with {self._option} = {value:g}"
        self._on = True
        self._restart({**self._besides, self._option: value})

    def _restart(self, changes: dict[str, Any]) -> None:
        self.bed.stop_flow(self._flow)
        self.bed.start_flow(self._flow, **{**self.bed.workload.flows[self._flow], **changes})

    def stop(self) -> None:
        """Restart the flow as it was."""
        if self._on:
            self._on = False
            self._restart({})
