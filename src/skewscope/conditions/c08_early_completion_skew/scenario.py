"""Fixed batches with mixed lengths; a closed loop with room stays silent."""

from __future__ import annotations

from skewscope.core.scenario import Fault, Scenario, Workload

MIXED = Workload(own_s=0.008, clients=8, slots=6, answer_tokens=40, length_spread=0.9)
ROOM = Workload(own_s=0.008, clients=6, slots=8, answer_tokens=40, length_spread=0.9)

SCENARIOS = (
    Scenario("mixed lengths", "healthy", duration_s=4.0, seed=801, workload=ROOM),
    Scenario(
        "fixed batches",
        "faulty",
        duration_s=5.0,
        seed=802,
        workload=MIXED,
        faults=(Fault("static_batching", 1.5, 5.0),),
    ),
    Scenario(
        "a slow rank",
        "near_miss",
        duration_s=4.0,
        seed=803,
        workload=ROOM,
        faults=(Fault("straggler", 1.5, 3.0, 2, 2.0),),
    ),
    Scenario(
        "batching repaired",
        "recovering",
        duration_s=8.0,
        seed=804,
        workload=MIXED,
        faults=(Fault("static_batching", 1.5, 4.0),),
    ),
)
