"""A serving host whose output queues for steps; a slow rank stays with its own condition."""

from __future__ import annotations

from skewscope.core.scenario import Fault, Scenario, Workload

STEADY = Workload(own_s=0.015, answer_tokens=40)

SCENARIOS = (
    Scenario("steady", "healthy", duration_s=4.0, seed=1701, workload=STEADY),
    Scenario(
        "late front end",
        "faulty",
        duration_s=4.0,
        seed=1702,
        workload=STEADY,
        faults=(Fault("slow_front_end", 1.5, 4.0, strength=0.012),),
    ),
    Scenario(
        "a slow rank",
        "near_miss",
        duration_s=4.0,
        seed=1703,
        workload=STEADY,
        faults=(Fault("straggler", 1.5, 3.0, 0, 2.0),),
    ),
    Scenario(
        "quota lifted",
        "recovering",
        duration_s=7.0,
        seed=1704,
        workload=STEADY,
        faults=(Fault("slow_front_end", 1.5, 3.5, strength=0.012),),
    ),
)
