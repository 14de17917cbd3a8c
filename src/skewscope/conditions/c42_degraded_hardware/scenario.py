"""A link that goes away and comes back; a paused process and a lossy link stay apart."""

from __future__ import annotations

from skewscope.core.scenario import Fault, Scenario

SCENARIOS = (
    Scenario("steady", "healthy", duration_s=4.0, seed=1),
    Scenario("link flaps", "faulty", duration_s=4.0, seed=4201, faults=(Fault("link_down", 1.5, 2.0, 2),)),
    Scenario(
        "a process pauses",
        "near_miss",
        duration_s=4.0,
        seed=4202,
        faults=(Fault("pause", 1.5, 2.0, 2, 0.5),),
    ),
    Scenario(
        "lossy link",
        "near_miss",
        duration_s=4.0,
        seed=2501,
        faults=(Fault("loss", 1.5, 4.0, 1, 0.02),),
    ),
    Scenario(
        "link is back",
        "recovering",
        duration_s=6.0,
        seed=4203,
        faults=(Fault("link_down", 1.5, 2.1, 1),),
    ),
)
