"""Clients that do not read; clients that finish and close, and lossy paths, stay apart."""

from __future__ import annotations

from skewscope.core.scenario import CLIENT, Fault, Scenario, Workload

FAST = Workload(own_s=0.01, answer_tokens=40)

SCENARIOS = (
    Scenario("steady", "healthy", duration_s=4.0, seed=1),
    Scenario(
        "slow readers",
        "faulty",
        duration_s=4.0,
        seed=501,
        workload=FAST,
        faults=(Fault("slow_reader", 1.5, 4.0, strength=0.8, share=0.5),),
    ),
    Scenario(
        "clients finish and close",
        "near_miss",
        duration_s=4.0,
        seed=502,
        workload=Workload(own_s=0.01, answer_tokens=10),
        faults=(Fault("overload", 1.0, 2.0, strength=2.0),),
    ),
    Scenario(
        "responses get lost",
        "near_miss",
        duration_s=4.0,
        seed=701,
        faults=(Fault("loss", 1.5, 4.0, CLIENT, 0.06, where="down"),),
    ),
    Scenario(
        "readers that catch up",
        "recovering",
        duration_s=7.5,
        seed=503,
        workload=FAST,
        faults=(Fault("slow_reader", 1.0, 2.2, strength=0.8, share=0.5),),
    ),
)
