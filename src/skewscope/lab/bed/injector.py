"""Injectors: each file in `injectors/` holds one class, found by its NAME. They undo themselves.

An injector acts on a running bed. `start` begins at a strength, `change` moves it (a ramp is a row of
changes), `stop` takes it off; `stop` may be called twice. What it does to processes and ports is described in
words in `how`.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from skewscope.lab.bed.bed import Bed


class InjectorError(ValueError):
    """No such injector, or settings it does not take."""


class Injector(ABC):
    """One injection into a bed; subclasses take their settings as keyword arguments."""

    NAME: ClassVar[str]
    STRENGTH: ClassVar[str]
    """What `strength` is, with its unit as a suffix."""
    NEEDS: ClassVar[tuple[str, ...]] = ()
    """Programs beyond those that every bed needs."""

    def __init__(self, bed: Bed) -> None:
        self.bed = bed
        self.how = ""

    def prepare(self) -> None:  # noqa: B027  most have nothing to prepare
        """Set up what must exist before the load begins, without any effect yet."""

    @abstractmethod
    def start(self, strength: float) -> None:
        """Begin."""

    def change(self, strength: float) -> None:
        """Move to another strength; where that needs no care, stop and start again."""
        self.stop()
        self.start(strength)

    @abstractmethod
    def stop(self) -> None:
        """Take the injection off."""


class Undo:
    """Things to undo, last first, each once."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], object]] = []

    def later(self, step: Callable[..., object], *arguments: object) -> None:
        """Remember a call."""
        self._steps.append(partial(step, *arguments))

    def now(self) -> None:
        """Undo; every step is tried, the first error is raised."""
        failed: Exception | None = None
        while self._steps:
            try:
                self._steps.pop()()
            except Exception as error:
                failed = failed or error
        if failed is not None:
            raise failed


def load_all() -> dict[str, type[Injector]]:
    """Return all injectors by name; raises InjectorError for a file without exactly one."""
    from skewscope.lab.bed import injectors

    found: dict[str, type[Injector]] = {}
    for module in iter_modules(injectors.__path__):
        code = import_module(f"{injectors.__name__}.{module.name}")
        own = [
            c
            for c in vars(code).values()
            if inspect.isclass(c) and issubclass(c, Injector) and c.__module__ == code.__name__
        ]
        if len(own) != 1 or module.name != own[0].NAME:
            raise InjectorError(f"{module.name}: exactly one injector of that name is needed")
        found[own[0].NAME] = own[0]
    return found


def settings_of(kind: type[Injector]) -> set[str]:
    """Return the settings that an injector takes besides its strength."""
    return set(inspect.signature(kind.__init__).parameters) - {"self", "bed"}


def build(bed: Bed, name: str, settings: Mapping[str, Any]) -> Injector:
    """Return an injector for a bed; raises InjectorError."""
    kinds = load_all()
    if name not in kinds:
        raise InjectorError(f"no injector {name!r}; there are {', '.join(sorted(kinds))}")
    unknown = set(settings) - settings_of(kinds[name])
    if unknown:
        raise InjectorError(f"{name} takes no {', '.join(sorted(unknown))}")
    return kinds[name](bed, **settings)


def ramp(
    injector: Injector, start: float, end: float, duration_s: float, wait: Callable[[float], object]
) -> None:
    """Move a running injection from one strength to another in equal ratios, four changes a second."""
    count = max(1, round(duration_s * 4))
    for k in range(1, count + 1):
        wait(duration_s / count)
        injector.change(start * (end / start) ** (k / count))
