"""A rank that takes no more of a bulk flow; a client that does not read stays apart."""

from __future__ import annotations

from skewscope.core.scenario import Fault, Scenario, Workload

BULK = Workload(bulk_bps=8e6)

SCENARIOS = (
    Scenario("steady", "healthy", duration_s=4.0, seed=1),
    Scenario("bulk transfer", "healthy", duration_s=3.0, seed=2, workload=BULK),
    Scenario(
        "the reader stops",
        "faulty",
        duration_s=4.0,
        seed=2601,
        workload=BULK,
        faults=(Fault("reader_stops", 1.5, 4.0, 0),),
    ),
    Scenario(
        "slow clients",
        "near_miss",
        duration_s=4.0,
        seed=501,
        workload=Workload(own_s=0.01, answer_tokens=40),
        faults=(Fault("slow_reader", 1.5, 4.0, strength=0.8, share=0.5),),
    ),
    Scenario(
        "bulk to a slow rank",
        "near_miss",
        duration_s=4.0,
        seed=2602,
        workload=BULK,
        faults=(Fault("straggler", 1.5, 4.0, 0, 1.6),),
    ),
    Scenario(
        "the reader goes on",
        "recovering",
        duration_s=5.5,
        seed=2603,
        workload=BULK,
        faults=(Fault("reader_stops", 1.5, 2.7, 0),),
    ),
)
