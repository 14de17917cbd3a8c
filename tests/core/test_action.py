from dataclasses import replace

from skewscope.core.action import LADDER, VERBS, ExecutedAction

ACTION = ExecutedAction(
    "a1", "chat", "10.0.0.1:80", "drain_endpoint", "edge", "c20", "gpu", "i1", decided_ns=5, ttl_s=2.5,
    weight_ratio=0.0,
)  # fmt: skip


def test_the_time_to_live_counts_from_the_decision() -> None:
    late = replace(ACTION, state="applied", applied_ns=10**10)
    assert late.expires_ns == 5 + 2_500_000_000


def test_every_verb_is_on_the_ladder() -> None:
    assert sorted(VERBS.values()) == list(range(len(LADDER)))
    assert ACTION.step == 3


def test_an_intent_counts_as_in_force() -> None:
    states = ("proposed", "intended", "applied", "reverting", "ended")
    assert [replace(ACTION, state=s).in_force for s in states] == [False, True, True, True, False]
