"""A lossy link; probes to a paused reader and overtaking frames stay apart."""

from __future__ import annotations

from skewscope.core.scenario import Fault, Scenario

SCENARIOS = (
    Scenario("steady", "healthy", duration_s=4.0, seed=1),
    Scenario(
        "lossy link",
        "faulty",
        duration_s=4.0,
        seed=2501,
        faults=(Fault("loss", 1.5, 4.0, 1, 0.02),),
    ),
    Scenario(
        "lossy towards the host",
        "faulty",
        duration_s=4.0,
        seed=2502,
        faults=(Fault("loss", 1.5, 4.0, 3, 0.03, where="down"),),
    ),
    Scenario(
        "a reader that pauses",
        "near_miss",
        duration_s=4.5,
        seed=3801,
        faults=(Fault("pause", 1.5, 4.0, 1, 0.2, period_s=0.8),),
    ),
    Scenario(
        "frames overtake each other",
        "near_miss",
        duration_s=4.0,
        seed=2503,
        faults=(Fault("reorder", 1.5, 4.0, 1, 0.0002, share=0.1),),
    ),
    Scenario(
        "losses that pass",
        "recovering",
        duration_s=6.5,
        seed=2504,
        faults=(Fault("loss", 1.5, 2.7, 2, 0.03),),
    ),
)
