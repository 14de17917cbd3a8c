"""The queue's order and the independence of the random streams."""

from hypothesis import given
from hypothesis import strategies as st

from skewscope.lab.sim.events import EventQueue, Streams


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=40))
def test_events_come_by_time_priority_and_insertion(pushed: list[tuple[int, int]]) -> None:
    queue = EventQueue()
    for number, (at, priority) in enumerate(pushed):
        queue.push(float(at), priority, (priority, number))
    popped = [queue.pop() for _ in range(len(queue))]
    expected = sorted((at, priority, number) for number, (at, priority) in enumerate(pushed))
    assert [(at, *event) for at, event in popped] == expected


def test_events_that_cannot_be_compared_are_fine() -> None:
    queue = EventQueue()
    queue.push(1.0, 0, object())
    queue.push(1.0, 0, {})
    assert isinstance(queue.pop()[1], object)
    assert queue.pop()[1] == {}


def test_streams_repeat_and_do_not_share_numbers() -> None:
    one, two = Streams.of(5), Streams.of(5)
    one.faults.random(1000)  # a draw from one stream leaves the others where they are
    assert one.placement.random() == two.placement.random()
    first = {getattr(Streams.of(5), n).random() for n in ("placement", "faults", "policy", "noise")}
    assert len(first) == 4
    assert Streams.of(5).noise_key != Streams.of(6).noise_key
