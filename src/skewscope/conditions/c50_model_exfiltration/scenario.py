"""A long upload to a stranger; a short one, a slow one and a bulk flow between ranks stay apart."""

from __future__ import annotations

from skewscope.core.scenario import Fault, Scenario, Workload

SCENARIOS = (
    Scenario("steady", "healthy", duration_s=3.0, seed=1),
    Scenario("bulk between ranks", "healthy", duration_s=4.0, seed=2, workload=Workload(bulk_bps=16e6)),
    Scenario(
        "upload of 20 Mbit/s",
        "faulty",
        duration_s=5.0,
        seed=5001,
        faults=(Fault("upload", 1.0, 5.0, 2, 20e6),),
    ),
    Scenario(
        "a second's upload",
        "near_miss",
        duration_s=4.0,
        seed=5002,
        faults=(Fault("upload", 1.0, 2.0, 1, 20e6),),
    ),
    Scenario(
        "logs leave",
        "near_miss",
        duration_s=4.0,
        seed=5003,
        faults=(Fault("upload", 0.5, 4.0, 1, 1e6),),
    ),
    Scenario(
        "an upload that ends",
        "recovering",
        duration_s=9.0,
        seed=5004,
        faults=(Fault("upload", 1.0, 5.0, 3, 20e6),),
    ),
)
