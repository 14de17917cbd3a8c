"""Responses that get lost on the way out; losses on the way in and overtaking frames stay apart."""

from __future__ import annotations

from skewscope.core.scenario import CLIENT, Fault, Scenario, Workload

ASKING = Workload(own_s=0.01, clients=8, answer_tokens=6)

SCENARIOS = (
    Scenario("steady", "healthy", duration_s=4.0, seed=1),
    Scenario(
        "responses get lost",
        "faulty",
        duration_s=4.0,
        seed=701,
        faults=(Fault("loss", 1.5, 4.0, CLIENT, 0.06, where="down"),),
    ),
    Scenario(
        "requests get lost",
        "near_miss",
        duration_s=4.0,
        seed=401,
        workload=ASKING,
        faults=(Fault("loss", 1.5, 4.0, CLIENT, 0.2, where="up"),),
    ),
    Scenario(
        "responses overtake each other",
        "near_miss",
        duration_s=4.0,
        seed=702,
        faults=(Fault("reorder", 1.5, 4.0, CLIENT, 0.002, share=0.3),),
    ),
    Scenario(
        "losses that pass",
        "recovering",
        duration_s=7.0,
        seed=703,
        faults=(Fault("loss", 1.0, 2.2, CLIENT, 0.08, where="down"),),
    ),
)
