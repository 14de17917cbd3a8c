"""A longer path, an unsteady one and a queue; a slow rank stays apart."""

from __future__ import annotations

from skewscope.core.scenario import Fault, Scenario

SCENARIOS = (
    Scenario("steady", "healthy", duration_s=4.0, seed=1),
    Scenario(
        "longer path",
        "faulty",
        duration_s=4.0,
        seed=2301,
        faults=(Fault("delay", 1.5, 4.0, 1, 0.002),),
    ),
    Scenario(
        "unsteady path",
        "faulty",
        duration_s=4.0,
        seed=2302,
        faults=(Fault("jitter", 1.5, 4.0, 3, 0.003),),
    ),
    Scenario(
        "queue at the port",
        "faulty",
        duration_s=4.0,
        seed=2304,
        faults=(Fault("rate_limit", 1.5, 4.0, 1, 8e6),),
    ),
    Scenario(
        "slow rank",
        "near_miss",
        duration_s=4.0,
        seed=2001,
        faults=(Fault("straggler", 1.5, 4.0, 2, 1.6),),
    ),
    Scenario(
        "detour that ends",
        "recovering",
        duration_s=6.0,
        seed=2303,
        faults=(Fault("delay", 1.5, 3.0, 2, 0.003),),
    ),
)
