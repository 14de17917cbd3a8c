"""A rank that pauses now and then; one small outlier and a rank that is always slow stay apart."""

from __future__ import annotations

from skewscope.core.scenario import Fault, Scenario

SCENARIOS = (
    Scenario("steady", "healthy", duration_s=4.0, seed=1),
    Scenario(
        "pauses",
        "faulty",
        duration_s=4.5,
        seed=3801,
        faults=(Fault("pause", 1.5, 4.0, 1, 0.2, period_s=0.8),),
    ),
    Scenario(
        "one small outlier",
        "near_miss",
        duration_s=4.0,
        seed=3802,
        faults=(Fault("pause", 2.0, 2.1, 2, 0.04),),
    ),
    Scenario(
        "slow rank",
        "near_miss",
        duration_s=4.0,
        seed=2001,
        faults=(Fault("straggler", 1.5, 4.0, 2, 1.6),),
    ),
    Scenario(
        "pauses that end",
        "recovering",
        duration_s=6.5,
        seed=3803,
        faults=(Fault("pause", 1.5, 3.0, 0, 0.2, period_s=0.7),),
    ),
)
