"""A setting of the gateway (nginx or HAProxy) changes, by a reload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skewscope.lab.bed import gateways
from skewscope.lab.bed.injector import Injector

if TYPE_CHECKING:
    from skewscope.lab.bed.bed import Bed


class Gateway(Injector):
    """`option` of the gateway is set to `strength`, `besides` are further options."""

    NAME = "gateway"
    STRENGTH = "option"

    def __init__(self, bed: Bed, option: str, besides: dict[str, Any] | None = None) -> None:
        super().__init__(bed)
        self._option, self._besides, self._on = option, besides or {}, False

    def start(self, strength: float) -> None:
        """Reload with the change."""
        changes = {**self._besides, self._option: round(strength)}
        self.how = "gateway reloaded with " + ", ".join(f"{k} = {v}" for k, v in changes.items())
        self._on = True
        gateways.apply(self.bed, self.bed.topology.of_role("gateway")[0], changes)

    def stop(self) -> None:
        """Reload with the usual settings."""
        if self._on:
            gateways.apply(self.bed, self.bed.topology.of_role("gateway")[0], {})
            self._on = False
