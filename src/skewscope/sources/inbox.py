"""Bodies that arrive from elsewhere while a run goes on, as a live tap: what a scraper or a receiver got.

Each body is read by the format that would read it from a file, so a live source and its replay give the
same samples; with a spool folder each body is kept as such a file.
"""

from __future__ import annotations

import io
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Empty, Full, Queue

from skewscope.core.directory import Directory
from skewscope.core.tables import Heard, Table
from skewscope.sources.documents import register
from skewscope.sources.format import Format, Origin

MAX_BODIES = 256
"""Bodies that wait to be read; a sender is told to try again when there is no room."""
STEP_S = 0.02
MAX_NOTES = 100


class Inbox:
    """A bounded queue of bodies between the threads that fetch them and the one that reads them."""

    def __init__(self, directory: Directory, spool: Path | None = None) -> None:
        self._directory = directory
        self._spool = spool
        self._queue: Queue[tuple[Format, bytes, str, bool, int]] = Queue(MAX_BODIES)
        self._sources: dict[str, int] = {}
        self.notes: Counter[str] = Counter()
        """What could not be read, and how often."""
        self.rows = 0

    def put(self, format_: Format, body: bytes, about: str, file_name: str, sure: bool = True) -> bool:
        """Hand a body over; False where there is no room.

        `about`: the endpoint it is of; where not `sure`, only where it does not say so itself (pushed).
        `file_name`: where a spool keeps it.
        """
        at_ns = time.time_ns()
        try:
            self._queue.put_nowait((format_, body, about, sure, at_ns))
        except Full:
            return False
        if self._spool is not None:
            self._keep(file_name.format(time=at_ns), body)
        return True

    def _keep(self, file_name: str, body: bytes) -> None:
        assert self._spool is not None
        path = self._spool / file_name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(body)
        except OSError as error:
            self.note(f"cannot keep a body: {error.strerror or error}")

    def note(self, text: str) -> None:
        """Count a problem; beyond a limit new ones are not told apart."""
        if text in self.notes or len(self.notes) < MAX_NOTES:
            self.notes[text] += 1

    def batches(self, stop: Callable[[], bool]) -> Iterator[dict[str, Table]]:
        """Yield the samples of each body until `stop()`; in silence, empty batches with the time."""
        while not stop():
            before_ns = time.time_ns()
            yield from self._drain()
            yield Heard({}, before_ns)  # a body that is not here yet will be dated later
            time.sleep(STEP_S)
        yield from self._drain()

    def _drain(self) -> Iterator[dict[str, Table]]:
        while True:
            try:
                format_, body, about, sure, at_ns = self._queue.get_nowait()
            except Empty:
                return
            origin = Origin(
                self._directory,
                self._source(about),
                host=about if sure else "",
                fallback=about,
                at_ns=at_ns,
            )
            for tables in format_.read(io.BytesIO(body), origin):
                self.rows += sum(map(len, tables.values()))
                yield tables
            for note in origin.notes:
                self.note(note)

    def _source(self, about: str) -> int:
        known = self._sources.get(about)
        if known is None:
            known = self._sources[about] = register(self._directory, about)
        return known


def bare_endpoint(text: str) -> str:
    """Return an address as a folder's name: without what a path must not hold."""
    return "".join(c if c.isalnum() or c in ".:-_[]" else "_" for c in text).lstrip(".") or "unknown"
