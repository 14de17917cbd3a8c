"""Executed actions: the ladder, its verbs, and what is on record of one action."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

LADDER = ("observe", "soft weight", "shed", "take out", "restart", "repair")
"""Steps 0 to 5, each harder to take back than the one before."""

VERBS: Mapping[str, int] = {
    "notify": 0,
    "lower_weight": 1,
    "shed_low_priority": 2,
    "drain_endpoint": 3,
    "restart_group": 4,
    "hand_over_node": 5,
}
"""What can be done to an endpoint, and the step of the ladder that it is on."""

MODES = ("shadow", "advise", "auto")

Settled = Mapping[str, Any]
"""A state of the outside world that an actuator reads or sets: JSON types only, compared by value."""


@dataclass(frozen=True)
class ExecutedAction:
    """One action on one endpoint, from the decision to its end.

    `before` and `after` are the actuator's states; setting `before` undoes it. `predicted_ratio` and
    `observed_ratio` are the share by which the pool's mean of `metric` falls. `state` is proposed,
    intended, applied, reverting or ended; `ended_how` says reverted, lost, overridden, failed or done.
    """

    id: str
    pool: str
    endpoint: str
    verb: str
    actuator: str
    condition: str
    cause: str
    incident: str
    decided_ns: int
    ttl_s: float
    weight_ratio: float
    metric: str = ""
    metric_usual: float = 0.0
    metric_now: float = 0.0
    predicted_ratio: float = 0.0
    why: tuple[str, ...] = ()
    before: Settled = field(default_factory=dict)
    after: Settled = field(default_factory=dict)
    state: str = "proposed"
    applied_ns: int = 0
    ended_ns: int = 0
    ended_how: str = ""
    observed_ratio: float | None = None
    verdict: str = ""
    note: str = ""

    @property
    def step(self) -> int:
        """The step of the ladder, 0 to 5."""
        return VERBS[self.verb]

    @property
    def expires_ns(self) -> int:
        """When it is taken back at the latest; counted from the decision, so that a crash adds nothing."""
        return self.decided_ns + int(self.ttl_s * 1e9)

    @property
    def in_force(self) -> bool:
        """Whether the world may differ because of it: from the intent until the end is on record."""
        return self.state in ("intended", "applied", "reverting")
