"""A replica that gets nothing; a night in which all get less stays silent."""

from __future__ import annotations

from skewscope.core.scenario import Fault, Scenario, Workload

PAIRS = Workload(ranks=2, replicas=2, own_s=0.008, answer_tokens=12, clients=8, slots=8)

SCENARIOS = (
    Scenario("round robin", "healthy", duration_s=4.0, seed=201, workload=PAIRS),
    Scenario(
        "nothing for one",
        "faulty",
        duration_s=5.0,
        seed=202,
        workload=PAIRS,
        faults=(Fault("uneven_routing", 1.5, 5.0, strength=1000.0),),
    ),
    Scenario(
        "a slow replica",
        "near_miss",
        duration_s=4.0,
        seed=203,
        workload=PAIRS,
        faults=(Fault("straggler", 1.5, 3.0, 2, 2.0),),
    ),
    Scenario(
        "back in rotation",
        "recovering",
        duration_s=7.0,
        seed=204,
        workload=PAIRS,
        faults=(Fault("uneven_routing", 1.5, 4.5, strength=1000.0),),
    ),
)
