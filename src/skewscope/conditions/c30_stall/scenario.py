"""A rank that ends or hangs; an engine with nobody asking and short pauses stay apart."""

from __future__ import annotations

from skewscope.core.scenario import Fault, Scenario, Workload

BESIDE = Workload(bulk_bps=1e6)
"""A flow that goes on beside the group: a capture of nothing but the stopped group ends with it."""

SCENARIOS = (
    Scenario("steady", "healthy", duration_s=4.0, seed=1),
    Scenario("rank ends", "faulty", duration_s=4.0, seed=3001, faults=(Fault("crash", 1.5, 4.0, 2),)),
    Scenario(
        "rank hangs",
        "faulty",
        duration_s=4.0,
        seed=3002,
        workload=BESIDE,
        faults=(Fault("pause", 1.5, 4.0, 2, 9.0),),
    ),
    Scenario(
        "nobody asks",
        "near_miss",
        duration_s=5.0,
        seed=3003,
        workload=Workload(clients=1, answer_tokens=20, think_s=3.0),
        faults=(Fault("overload", 0.3, 1.0, strength=4.0),),
    ),
    Scenario(
        "pauses",
        "near_miss",
        duration_s=4.5,
        seed=3801,
        faults=(Fault("pause", 1.5, 4.0, 1, 0.2, period_s=0.8),),
    ),
    Scenario(
        "group goes on",
        "recovering",
        duration_s=5.5,
        seed=3004,
        workload=BESIDE,
        faults=(Fault("pause", 1.5, 3.0, -1, 1.5),),
    ),
)
