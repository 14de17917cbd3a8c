"""A heartbeat that waits; a busier host, a slow rank and a beat lost now and then stay apart."""

from __future__ import annotations

from skewscope.core.scenario import Fault, Scenario, Workload

BEATS = Workload(heartbeat_s=0.2)

SCENARIOS = (
    Scenario("steady", "healthy", duration_s=4.0, seed=1, workload=BEATS),
    Scenario(
        "beats wait",
        "faulty",
        duration_s=7.0,
        seed=4801,
        workload=BEATS,
        faults=(Fault("starved_heartbeat", 2.0, 7.0, 2, 0.7, period_s=1.6),),
    ),
    Scenario(
        "a busier host",
        "near_miss",
        duration_s=5.0,
        seed=4802,
        workload=BEATS,
        faults=(Fault("straggler", 2.0, 5.0, 1, 1.6),),
    ),
    Scenario(
        "a beat that is a little late",
        "near_miss",
        duration_s=5.0,
        seed=4803,
        workload=BEATS,
        faults=(Fault("starved_heartbeat", 2.0, 5.0, 2, 0.15, period_s=1.0),),
    ),
    Scenario(
        "beats that come again",
        "recovering",
        duration_s=14.0,
        seed=4804,
        workload=Workload(heartbeat_s=0.2, clients=2),
        faults=(Fault("starved_heartbeat", 2.0, 4.5, 1, 0.7, period_s=1.6),),
    ),
)
