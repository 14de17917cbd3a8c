"""A burst on an engine with few slots; bursts within capacity stay silent."""

from __future__ import annotations

from skewscope.core.scenario import Fault, Scenario, Workload

FULL = Workload(own_s=0.01, slots=4, clients=3, answer_tokens=30)
ROOM = Workload(own_s=0.01, slots=16, clients=4, answer_tokens=30)

SCENARIOS = (
    Scenario("steady", "healthy", duration_s=4.0, seed=101, workload=ROOM),
    Scenario(
        "mixed lengths", "healthy", duration_s=4.0, seed=102, workload=Workload(own_s=0.01, length_spread=0.8)
    ),
    Scenario(
        "burst",
        "faulty",
        duration_s=4.0,
        seed=103,
        workload=FULL,
        faults=(Fault("overload", 1.5, 4.0, strength=4.0),),
    ),
    Scenario(
        "burst within capacity",
        "near_miss",
        duration_s=4.0,
        seed=104,
        workload=ROOM,
        faults=(Fault("overload", 1.5, 3.0, strength=2.0),),
    ),
    Scenario(
        "slow rank",
        "near_miss",
        duration_s=4.0,
        seed=105,
        workload=ROOM,
        faults=(Fault("straggler", 1.5, 3.0, 2, 2.0),),
    ),
    Scenario(
        "burst that passes",
        "recovering",
        duration_s=7.0,
        seed=106,
        workload=FULL,
        faults=(Fault("overload", 1.5, 3.5, strength=4.0),),
    ),
)
