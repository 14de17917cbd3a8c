"""A gateway at its limit; a limit out of reach and a queue at the engine stay apart."""

from __future__ import annotations

from skewscope.core.scenario import Fault, Scenario, Workload

BUSY = Workload(clients=8, slots=12)

SCENARIOS = (
    Scenario("steady", "healthy", duration_s=4.0, seed=1, workload=BUSY),
    Scenario(
        "three at once",
        "faulty",
        duration_s=6.0,
        seed=4601,
        workload=BUSY,
        faults=(Fault("gateway_ceiling", 1.5, 6.0, -1, 3),),
    ),
    Scenario(
        "a limit out of reach",
        "near_miss",
        duration_s=4.0,
        seed=4602,
        workload=BUSY,
        faults=(Fault("gateway_ceiling", 1.5, 4.0, -1, 20),),
    ),
    Scenario(
        "the engine queues",
        "near_miss",
        duration_s=5.0,
        seed=4603,
        workload=Workload(clients=4, slots=4),
        faults=(Fault("overload", 1.5, 5.0, -1, 3.0),),
    ),
    Scenario(
        "a limit that is raised",
        "recovering",
        duration_s=8.0,
        seed=4604,
        workload=BUSY,
        faults=(Fault("gateway_ceiling", 1.5, 4.5, -1, 3),),
    ),
)
