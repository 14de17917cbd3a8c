"""The prefill side of KV transfers changes: a pause first, tiny pieces, a low rate, failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skewscope.lab.bed.injector import Injector

if TYPE_CHECKING:
    from skewscope.lab.bed.bed import Bed


class KvOption(Injector):
    """`option` of the KV servers on `nodes` is set to `strength`."""

    NAME = "kv_option"
    STRENGTH = "option"

    def __init__(self, bed: Bed, nodes: list[str], option: str) -> None:
        super().__init__(bed)
        self._nodes, self._option, self._on = nodes, option, False

    def start(self, strength: float) -> None:
        """Switch it on."""
        self.how = f"{self._option} = {strength:g} in KV transfers from {', '.join(self._nodes)}"
        self._on = True
        self.change(strength)

    def change(self, strength: float) -> None:
        """Set another value."""
        for node in self._nodes:
            self.bed.processes.tell(f"kv-{node}", **{self._option: strength})

    def stop(self) -> None:
        """Switch it off."""
        if self._on:
            from skewscope.lab.bed.programs.kv import OPTIONS

            self.change(OPTIONS[self._option])
            self._on = False
