"""More clients, or other ones: bursts, long prompts, slow readers, hang-ups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skewscope.lab.bed.injector import Injector

if TYPE_CHECKING:
    from skewscope.lab.bed.bed import Bed


class Clients(Injector):
    """A group of clients with `settings`, of which `scaled` is set to `strength`, begins.

    With `instead` the main clients end at that moment.
    """

    NAME = "clients"
    STRENGTH = "clients"

    def __init__(
        self, bed: Bed, settings: dict[str, Any], scaled: str = "clients", instead: bool = False
    ) -> None:
        super().__init__(bed)
        self._settings, self._scaled, self._instead = settings, scaled, instead
        self._name = ""

    def prepare(self) -> None:
        """Nothing: the group starts in `start`, as its strength is among its settings."""

    def start(self, strength: float) -> None:
        """Start the group."""
        value: float | str = strength
        if self._scaled in ("prompt", "answer"):
            value = str(max(1, round(strength)))
        elif self._scaled in ("clients", "burst", "hang_up_after"):
            value = max(1, round(strength))
        settings = {**self._settings, self._scaled: value}
        self.how = "clients begin: " + ", ".join(f"{k} {v}" for k, v in sorted(settings.items()))
        self._name = f"extra{sum(n.startswith('client-extra') for n in self.bed.processes.names())}"
        self.bed.add_client(self._name, settings)
        if self._instead:
            for main in self.bed.main_clients():
                self.bed.processes.tell(main, end=True)
        self.bed.processes.tell(f"client-{self._name}", go=True)

    def stop(self) -> None:
        """Let the group finish what is open and start no more."""
        if self._name:
            self.bed.processes.tell(f"client-{self._name}", end=True)
            self._name = ""
