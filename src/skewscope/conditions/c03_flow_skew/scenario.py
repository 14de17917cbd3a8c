"""Most requests for one replica; equal shares with unequal luck stay silent."""

from __future__ import annotations

from skewscope.core.scenario import Fault, Scenario, Workload

PAIRS = Workload(ranks=2, replicas=2, own_s=0.008, answer_tokens=12, clients=8, slots=8)

SCENARIOS = (
    Scenario("round robin", "healthy", duration_s=4.0, seed=301, workload=PAIRS),
    Scenario(
        "mixed lengths",
        "healthy",
        duration_s=4.0,
        seed=302,
        workload=Workload(ranks=2, replicas=2, own_s=0.008, answer_tokens=12, clients=8, length_spread=0.5),
    ),
    Scenario(
        "twelve to one",
        "faulty",
        duration_s=4.0,
        seed=303,
        workload=PAIRS,
        faults=(Fault("uneven_routing", 1.5, 4.0, strength=12.0),),
    ),
    Scenario(
        "a slow replica",
        "near_miss",
        duration_s=4.0,
        seed=304,
        workload=PAIRS,
        faults=(Fault("straggler", 1.5, 3.0, 2, 2.0),),
    ),
    Scenario(
        "weights set back",
        "recovering",
        duration_s=8.0,
        seed=305,
        workload=PAIRS,
        faults=(Fault("uneven_routing", 1.5, 3.5, strength=12.0),),
    ),
)
