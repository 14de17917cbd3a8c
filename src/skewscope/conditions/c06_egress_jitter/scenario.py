"""A serving layer that holds pieces back at random; irregular rounds stay with their own condition."""

from __future__ import annotations

from skewscope.core.scenario import Fault, Scenario, Workload

STEADY = Workload(own_s=0.015, answer_tokens=40)

SCENARIOS = (
    Scenario("steady", "healthy", duration_s=4.0, seed=601, workload=STEADY),
    Scenario(
        "jitter",
        "faulty",
        duration_s=4.0,
        seed=602,
        workload=STEADY,
        faults=(Fault("egress_jitter", 1.5, 4.0, strength=1.0),),
    ),
    Scenario(
        "irregular rounds",
        "near_miss",
        duration_s=4.0,
        seed=603,
        workload=STEADY,
        faults=(Fault("pause", 1.5, 3.0, 1, 0.15, period_s=0.5),),
    ),
    Scenario(
        "jitter that ends",
        "recovering",
        duration_s=7.0,
        seed=604,
        workload=STEADY,
        faults=(Fault("egress_jitter", 1.5, 3.5, strength=1.0),),
    ),
)
