"""A port with a smaller MTU; random loss, which hits small packets too, stays apart."""

from __future__ import annotations

from skewscope.core.scenario import Fault, Scenario

SCENARIOS = (
    Scenario("steady", "healthy", duration_s=4.0, seed=1),
    Scenario("smaller MTU", "faulty", duration_s=4.5, seed=4701, faults=(Fault("mtu", 1.5, 4.5, 1, 1400.0),)),
    Scenario(
        "lossy link",
        "near_miss",
        duration_s=4.0,
        seed=2501,
        faults=(Fault("loss", 1.5, 4.0, 1, 0.02),),
    ),
    Scenario(
        "MTU is put right",
        "recovering",
        duration_s=8.5,
        seed=4702,
        faults=(Fault("mtu", 1.5, 2.5, 2, 1400.0),),
    ),
)
