"""A bulk flow that fills a port; bulk within capacity and a longer path stay apart."""

from __future__ import annotations

from skewscope.core.scenario import Fault, Scenario, Workload

SCENARIOS = (
    Scenario("steady", "healthy", duration_s=4.0, seed=1),
    Scenario("bulk transfer", "healthy", duration_s=3.0, seed=2, workload=Workload(bulk_bps=8e6)),
    Scenario(
        "bulk fills the port",
        "faulty",
        duration_s=4.0,
        seed=901,
        faults=(Fault("cross_traffic", 1.5, 4.0, 2, 40e6, where="deep"),),
    ),
    Scenario(
        "bulk within capacity",
        "near_miss",
        duration_s=4.0,
        seed=902,
        workload=Workload(bulk_bps=8e6),
        faults=(Fault("rate_limit", 1.5, 4.0, 0, 200e6),),
    ),
    Scenario(
        "longer path",
        "near_miss",
        duration_s=4.0,
        seed=2301,
        faults=(Fault("delay", 1.5, 4.0, 1, 0.002),),
    ),
    Scenario(
        "bulk that ends",
        "recovering",
        duration_s=6.0,
        seed=903,
        faults=(Fault("cross_traffic", 1.5, 2.7, 2, 40e6, where="deep"),),
    ),
)
