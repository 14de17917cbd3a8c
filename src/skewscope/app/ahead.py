"""Reading ahead: an iterator that runs in a thread of its own, a bounded distance in front of its user."""

from __future__ import annotations

from collections.abc import Iterator
from queue import Empty, Full, Queue
from threading import Event, Thread
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")

POLL_S = 0.1
"""How often a thread that waits for room looks whether it is still wanted."""


class Ahead(Generic[T]):
    """The items of an iterator, in its order, made by one thread while the user works on earlier ones.

    What the iterator raises is raised here, behind the items that came before it. Leaving the `with`
    block ends the thread, closes the iterator within it, and waits for both.
    """

    def __init__(self, source: Iterator[T], depth: int) -> None:
        self._source = source
        self._ready: Queue[tuple[T | None, BaseException | None]] = Queue(depth)
        self._left = Event()
        self._thread = Thread(target=self._run, name="skewscope-reader", daemon=True)

    def __enter__(self) -> Iterator[T]:
        self._thread.start()
        return self._items()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._left.set()
        try:
            while True:  # whoever waits for room finds some, and then sees that nobody reads on
                self._ready.get_nowait()
        except Empty:
            pass
        self._thread.join()

    def _items(self) -> Iterator[T]:
        while True:
            item, error = self._ready.get()
            if error is not None:
                raise error
            if item is None:
                return
            yield item

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            for item in self._source:
                if not self._put(item, None):
                    break
        except BaseException as raised:  # for the thread that reads the items
            error = raised
        finally:
            close = getattr(self._source, "close", None)
            if close is not None:
                close()
        self._put(None, error)

    def _put(self, item: T | None, error: BaseException | None) -> bool:
        """Hand over one item; return False once nobody reads on."""
        while not self._left.is_set():
            try:
                self._ready.put((item, error), timeout=POLL_S)
            except Full:
                continue
            return True
        return False
