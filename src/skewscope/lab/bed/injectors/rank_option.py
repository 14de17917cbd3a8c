"""A change inside the engine: slow accelerator, fixed cost per step, garbage collection, static batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skewscope.lab.bed.injector import Injector

if TYPE_CHECKING:
    from skewscope.lab.bed.bed import Bed

USUAL: dict[str, Any] = {
    "slow": 1.0, "extra_ms": 0.0, "burn_ratio": 0.0, "collect_every_s": 0.0,
    "hot_ratio": 0.0,
}  # fmt: skip
WHOLE = ("static", "chunk", "pool_tokens", "collect_objects")


class RankOption(Injector):
    """`option` of the ranks in `processes` is set to `strength`, `besides` are further options."""

    NAME = "rank_option"
    STRENGTH = "option"

    def __init__(
        self, bed: Bed, processes: list[str], option: str, besides: dict[str, Any] | None = None
    ) -> None:
        super().__init__(bed)
        self._processes, self._option, self._besides, self._on = processes, option, besides or {}, False

    def start(self, strength: float) -> None:
        """Switch it on."""
        self.how = f"{self._option} = {strength:g} in {', '.join(self._processes)}"
        self._on = True
        self.change(strength)

    def change(self, strength: float) -> None:
        """Set another value."""
        value = round(strength) if self._option in WHOLE else strength
        self._tell({**self._besides, self._option: value})

    def _tell(self, options: dict[str, Any]) -> None:
        for process in self._processes:
            self.bed.processes.set_rank(process, **options)

    def stop(self) -> None:
        """Switch it off."""
        if self._on:
            load = self.bed.workload
            usual = {**USUAL, "static": load.static, "chunk": load.chunk, "pool_tokens": load.pool_tokens}
            self._tell(usual)
            self._on = False
