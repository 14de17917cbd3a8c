"""A gateway that collects; slow readers, uneven front ends and small blocks stay apart."""

from __future__ import annotations

from skewscope.core.scenario import Fault, Scenario, Workload

STREAMS = Workload(answer_tokens=24)

SCENARIOS = (
    Scenario("steady", "healthy", duration_s=4.0, seed=1, workload=STREAMS),
    Scenario(
        "blocks of 2 KB",
        "faulty",
        duration_s=6.0,
        seed=3201,
        workload=STREAMS,
        faults=(Fault("gateway_buffer", 2.5, 6.0, -1, 2048),),
    ),
    Scenario(
        "all at the end",
        "faulty",
        duration_s=7.0,
        seed=3202,
        workload=STREAMS,
        faults=(Fault("gateway_buffer", 2.5, 7.0, -1, 1e9),),
    ),
    Scenario(
        "blocks of one piece",
        "near_miss",
        duration_s=5.0,
        seed=3203,
        workload=STREAMS,
        faults=(Fault("gateway_buffer", 2.5, 5.0, -1, 100),),
    ),
    Scenario(
        "uneven front end",
        "near_miss",
        duration_s=5.0,
        seed=602,
        workload=STREAMS,
        faults=(Fault("egress_jitter", 2.5, 5.0, 0, 0.6),),
    ),
    Scenario(
        "one slow reader",
        "near_miss",
        duration_s=5.0,
        seed=3204,
        workload=STREAMS,
        faults=(Fault("slow_reader", 2.5, 5.0, -1, 1.2, share=0.25),),
    ),
    Scenario(
        "buffering that is switched off",
        "recovering",
        duration_s=8.0,
        seed=3205,
        workload=STREAMS,
        faults=(Fault("gateway_buffer", 2.5, 5.0, -1, 2048),),
    ),
)
