"""Long answers that gather on one replica; mixed lengths in a fair draw stay silent."""

from __future__ import annotations

from skewscope.core.scenario import Fault, Scenario, Workload

PAIRS = Workload(ranks=2, replicas=2, own_s=0.008, answer_tokens=24, clients=6, slots=4)
ROOM = Workload(ranks=2, replicas=2, own_s=0.008, answer_tokens=24, clients=8, slots=8, length_spread=0.4)

SCENARIOS = (
    Scenario("fair draw", "healthy", duration_s=4.0, seed=2201, workload=ROOM),
    Scenario(
        "long answers on one",
        "faulty",
        duration_s=6.0,
        seed=2202,
        workload=PAIRS,
        faults=(Fault("token_blind_routing", 1.5, 6.0, strength=6.0),),
    ),
    Scenario(
        "uneven arrivals",
        "near_miss",
        duration_s=4.0,
        seed=2203,
        workload=ROOM,
        faults=(Fault("uneven_routing", 1.5, 4.0, strength=12.0),),
    ),
    Scenario(
        "balanced again",
        "recovering",
        duration_s=10.0,
        seed=2204,
        workload=PAIRS,
        faults=(Fault("token_blind_routing", 1.5, 4.5, strength=4.0),),
    ),
)
