"""A fault of the router: uneven weights, sticky or stale choice, answers held back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skewscope.lab.bed.injector import Injector

if TYPE_CHECKING:
    from skewscope.lab.bed.bed import Bed


class Router(Injector):
    """The router gets `options`; `strength` goes to `option`.

    `weight` is the weight of the replica `favourite` against 1 for the others.
    """

    NAME = "router"
    STRENGTH = "option"

    def __init__(
        self, bed: Bed, option: str = "weight", favourite: int = 0, options: dict[str, Any] | None = None
    ) -> None:
        super().__init__(bed)
        self._option, self._favourite, self._options, self._on = option, favourite, options or {}, False

    def start(self, strength: float) -> None:
        """Change the router's options."""
        self.how = f"router: {self._option} = {strength:g}" + "".join(
            f", {k} = {v}" for k, v in self._options.items()
        )
        self._on = True
        self._tell(self._options)
        self.change(strength)

    def change(self, strength: float) -> None:
        """Set another value."""
        count = len(self.bed.topology.replicas())
        if self._option == "weight":
            weights = [strength if k == self._favourite else 1.0 for k in range(count)]
            self._tell({"weights": weights})
        else:
            self._tell({self._option: strength})

    def _tell(self, options: dict[str, Any]) -> None:
        self.bed.processes.tell(self.bed.topology.of_role("router")[0].name, **options)

    def stop(self) -> None:
        """Set the usual options."""
        if self._on:
            usual = {"policy": "weighted", "hold_bytes": 0, "scrape_s": 1.0, **self.bed.workload.router}
            usual.setdefault("weights", [1.0] * len(self.bed.topology.replicas()))
            self._tell(usual)
            self._on = False
