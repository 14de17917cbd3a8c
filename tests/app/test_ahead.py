"""Reading ahead: order, bounds, errors, and that no thread stays."""

import threading

import pytest

from skewscope.app.ahead import Ahead

DEPTH = 4


def readers():
    return [t for t in threading.enumerate() if t.name == "skewscope-reader"]


class Source:
    """Counts to `count`, notes how far it was read and in which thread it was closed."""

    def __init__(self, count, error=None):
        self.made, self.closed_in, self.passed = 0, None, threading.Semaphore(0)
        self._count, self._error = count, error

    def items(self):
        try:
            for i in range(self._count):
                self.made = i + 1
                self.passed.release()
                yield i
            if self._error is not None:
                raise self._error
        finally:
            self.closed_in = threading.current_thread().name


def test_items_come_in_order_and_from_another_thread():
    source = Source(1_000)
    with Ahead(source.items(), DEPTH) as items:
        assert list(items) == list(range(1_000))
    assert source.closed_in == "skewscope-reader"
    assert readers() == []


def test_it_reads_ahead_but_not_far():
    source = Source(1_000)
    with Ahead(source.items(), DEPTH) as items:
        assert next(items) == 0
        for _ in range(DEPTH + 2):  # one handed over, DEPTH ready, one that waits for room
            source.passed.acquire(timeout=10)
        assert source.made <= DEPTH + 2
    assert source.made <= DEPTH + 3
    assert source.closed_in == "skewscope-reader"
    assert readers() == []


def test_an_error_comes_behind_the_items_before_it():
    got = []
    with pytest.raises(OSError, match="gone"), Ahead(Source(3, OSError("gone")).items(), DEPTH) as items:
        got.extend(items)
    assert got == [0, 1, 2] or got == []
    assert readers() == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_error_of_the_user_ends_the_thread(error):
    source = Source(1_000)

    def use():
        with Ahead(source.items(), DEPTH) as items:
            next(items)
            raise error

    with pytest.raises(error):
        use()
    assert source.closed_in == "skewscope-reader"
    assert readers() == []


def test_nothing_is_an_end():
    with Ahead(iter(()), DEPTH) as items:
        assert list(items) == []
