"""Hosts that fetch together; one that fetches alone, small fetches and bulk between ranks stay apart."""

from __future__ import annotations

from skewscope.core.scenario import Fault, Scenario, Workload

SCENARIOS = (
    Scenario("steady", "healthy", duration_s=3.0, seed=1),
    Scenario("bulk between ranks", "healthy", duration_s=3.0, seed=2, workload=Workload(bulk_bps=16e6)),
    Scenario(
        "all fetch at 20 Mbit/s",
        "faulty",
        duration_s=4.5,
        seed=4901,
        faults=(Fault("fetch", 1.0, 4.5, -1, 20e6),),
    ),
    Scenario(
        "one fetches",
        "near_miss",
        duration_s=4.0,
        seed=4902,
        faults=(Fault("fetch", 1.0, 4.0, 1, 20e6),),
    ),
    Scenario(
        "all fetch a little",
        "near_miss",
        duration_s=4.0,
        seed=4903,
        faults=(Fault("fetch", 1.0, 2.0, -1, 16e6),),
    ),
    Scenario(
        "a storm that passes",
        "recovering",
        duration_s=8.0,
        seed=4904,
        faults=(Fault("fetch", 1.0, 4.0, -1, 20e6),),
    ),
)
