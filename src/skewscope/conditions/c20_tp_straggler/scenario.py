"""One slow rank; a slow group, a fixed order of entry and a slow link stay apart."""

from __future__ import annotations

from skewscope.core.scenario import Fault, Scenario

SCENARIOS = (
    Scenario("steady", "healthy", duration_s=4.0, seed=1),
    Scenario(
        "slow rank",
        "faulty",
        duration_s=4.0,
        seed=2001,
        faults=(Fault("straggler", 1.5, 4.0, 2, 1.6),),
    ),
    Scenario(
        "all members slower alike",
        "near_miss",
        duration_s=4.0,
        seed=2003,
        faults=(Fault("straggler", 1.5, 4.0, -1, 1.6),),
    ),
    Scenario(
        "one is always a little later",
        "near_miss",
        duration_s=4.0,
        seed=2004,
        faults=(Fault("straggler", -2.0, 4.0, 2, 1.2),),
    ),
    Scenario(
        "longer path",
        "near_miss",
        duration_s=4.0,
        seed=2301,
        faults=(Fault("delay", 1.5, 4.0, 1, 0.002),),
    ),
    Scenario(
        "rank that recovers",
        "recovering",
        duration_s=5.5,
        seed=2005,
        faults=(Fault("straggler", 1.5, 3.0, 3, 1.6),),
    ),
)
