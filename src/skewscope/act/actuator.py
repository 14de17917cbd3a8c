"""What an actuator is: it reads a state, says which requests set a state, and sends them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from skewscope.core.action import Settled


class ActuatorError(Exception):
    """The outside world refused or did not answer; the message is one line."""


@dataclass(frozen=True)
class Target:
    """One endpoint as an actuator knows it, and why it is acted upon (for those that tell people)."""

    name: str
    id: str
    node: str = ""
    peers: tuple[str, ...] = ()
    action: str = ""
    reason: str = ""
    now_ns: int = 0
    until_ns: int = 0


@dataclass(frozen=True)
class Request:
    """One thing that is sent: what (a method and path, a command), where, and the body."""

    what: str
    where: str
    body: str = ""

    def lines(self) -> list[str]:
        """Return it as lines for a person."""
        return [f"{self.where}: {self.what}", *(f"  {line}" for line in self.body.splitlines())]


@runtime_checkable
class Actuator(Protocol):
    """One kind of router, proxy, engine or service. Making one checks settings and sends nothing.

    `put` sends exactly what `requests` returns for the same state, and is idempotent: putting a state
    that is in force changes nothing. All raise ActuatorError.
    """

    VERBS: Mapping[str, bool]
    """The verbs it can do, and whether each can be taken back."""

    def read(self, verb: str, target: Target) -> Settled:
        """Return the state that is in force, as far as the verb touches it."""
        ...

    def wanted(self, verb: str, target: Target, before: Settled, weight_ratio: float) -> Settled:
        """Return the state that the verb asks for; no I/O."""
        ...

    def requests(self, verb: str, target: Target, state: Settled) -> Sequence[Request]:
        """Return what would be sent to bring `state` in force; may read, changes nothing."""
        ...

    def put(self, verb: str, target: Target, state: Settled) -> None:
        """Bring `state` in force."""
        ...

    def unhealthy(self, names: Sequence[str]) -> set[str]:
        """Return those names that are out of rotation already, whoever did it."""
        ...
