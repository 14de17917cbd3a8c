"""The engine's scheduler, step by step."""

from hypothesis import given
from hypothesis import strategies as st

from skewscope.lab.bed.batching import DECODE, IDLE, MIXED, PREFILL, Scheduler


def run(plan, limit=10_000):
    """Run to the end; return the steps and the tokens per request."""
    steps, tokens = [], {}
    for _ in range(limit):
        step = plan.next()
        if step.kind == IDLE:
            return steps, tokens
        steps.append(step)
        for request, number, last in plan.finish(step):
            tokens.setdefault(request, []).append((number, last))
    raise AssertionError("the scheduler does not end")


def test_a_prefill_has_the_step_to_itself():
    plan = Scheduler()
    plan.submit("a", 16, 3)
    plan.submit("b", 8, 2)
    steps, tokens = run(plan)
    assert [(s.kind, s.tokens) for s in steps] == [(PREFILL, 16), (PREFILL, 8), (DECODE, 2), (DECODE, 1)]
    assert tokens == {"a": [(1, False), (2, False), (3, True)], "b": [(1, False), (2, True)]}


def test_chunks_share_a_step_with_running_sequences():
    plan = Scheduler(chunk=10)
    plan.submit("a", 4, 5)
    plan.next()
    plan.submit("b", 25, 1)
    plan.finish(plan.next())
    steps, _ = run(plan)
    first = [(s.kind, s.prefill_tokens, s.decode_count) for s in steps[:2]]
    assert first == [(MIXED, 10, 1), (MIXED, 5, 1)]


def test_a_static_batch_lets_nobody_in_before_it_ends():
    plan = Scheduler(static=True)
    plan.submit("long", 1, 5)
    plan.finish(plan.next())
    plan.submit("late", 1, 1)
    while plan.running:
        assert [s.id for s in plan.running] == ["long"]
        plan.finish(plan.next())
    assert [s.id for s in plan.next().emits] == ["late"]


def test_a_prefilled_request_goes_straight_to_decoding():
    plan = Scheduler()
    plan.submit("a", 16, 2, prefilled=True)
    steps, tokens = run(plan)
    assert [s.kind for s in steps] == [DECODE, DECODE]
    assert len(tokens["a"]) == 2


def test_slots_bound_the_batch_and_cancel_frees_one():
    plan = Scheduler(slots=1)
    plan.submit("a", 1, 100)
    plan.submit("b", 1, 1)
    plan.finish(plan.next())
    assert [s.id for s in plan.waiting] == ["b"]
    plan.cancel("a")
    assert [s.id for s in plan.next().emits] == ["b"]


def test_a_small_pool_preempts_the_newest_and_computes_it_again():
    plan = Scheduler(pool_tokens=40)
    plan.submit("a", 12, 20)
    plan.submit("b", 12, 20)
    steps, tokens = run(plan)
    assert plan.preemptions > 0
    assert any(s.kind == PREFILL and s.prefill_tokens > 12 for s in steps)
    assert len(tokens["a"]) == len(tokens["b"]) == 20


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(1, 20)), max_size=12),
    st.integers(1, 5),
    st.sampled_from([0, 7]),
    st.booleans(),
    st.sampled_from([0, 60]),
)
def test_every_request_gets_each_of_its_tokens_once(requests, slots, chunk, static, pool):
    plan = Scheduler(slots, chunk, static, pool)
    for k, (prompt, answer) in enumerate(requests):
        plan.submit(str(k), prompt, answer)
    _, tokens = run(plan)
    for k, (_, answer) in enumerate(requests):
        assert tokens[str(k)] == [(n, n == answer) for n in range(1, answer + 1)]
