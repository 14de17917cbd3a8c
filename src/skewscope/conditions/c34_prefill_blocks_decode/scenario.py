"""Prompts that stop the running streams; a rank that pauses stays with its own condition."""

from __future__ import annotations

from skewscope.core.scenario import Fault, Scenario, Workload

STEADY = Workload(own_s=0.015, answer_tokens=40)

SCENARIOS = (
    Scenario("steady", "healthy", duration_s=4.0, seed=3401, workload=STEADY),
    Scenario(
        "a single stream", "healthy", duration_s=4.0, seed=3402, workload=Workload(own_s=0.015, clients=1)
    ),
    Scenario(
        "long prompts",
        "faulty",
        duration_s=4.0,
        seed=3403,
        workload=STEADY,
        faults=(Fault("long_prompts", 1.5, 4.0, strength=30.0),),
    ),
    Scenario(
        "a rank that pauses",
        "near_miss",
        duration_s=4.0,
        seed=3404,
        workload=STEADY,
        faults=(Fault("pause", 1.5, 3.0, 1, 0.15, period_s=0.5),),
    ),
    Scenario(
        "long prompts end",
        "recovering",
        duration_s=8.0,
        seed=3405,
        workload=STEADY,
        faults=(Fault("long_prompts", 1.5, 3.5, strength=30.0),),
    ),
)
