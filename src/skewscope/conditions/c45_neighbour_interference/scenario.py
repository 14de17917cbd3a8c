"""Two engines on a busy host are late together; one slow engine stays apart."""

from __future__ import annotations

from skewscope.core.scenario import Fault, Scenario, Workload

SHARED = Workload(ranks=1, replicas=4, per_host=2, clients=8)
"""Four engines of one rank each on two hosts."""

SCENARIOS = (
    Scenario("steady", "healthy", duration_s=4.0, seed=3, workload=SHARED),
    Scenario(
        "busy host",
        "faulty",
        duration_s=4.0,
        seed=4501,
        workload=SHARED,
        faults=(Fault("host_busy", 1.5, 4.0, 1, 5.0),),
    ),
    Scenario(
        "one slow process",
        "near_miss",
        duration_s=4.0,
        seed=4502,
        workload=SHARED,
        faults=(Fault("straggler", 1.5, 4.0, 2, 2.0),),
    ),
    Scenario(
        "busy for a while",
        "recovering",
        duration_s=6.0,
        seed=4503,
        workload=SHARED,
        faults=(Fault("host_busy", 1.5, 3.0, 0, 5.0),),
    ),
)
