"""Merge the sample tables of several taps into slices of event time.

A slice is closed when every tap has delivered something later (the watermark) or has ended, so
offline files, live taps and the simulator give identical slices on identical samples. Rows that
step back in time within a tap stay where they arrived, and each slice is sorted.

Counters, metrics and logs beside captures are joined to the slices that the captures make, so that what
packets say does not depend on what else was given: what was read shortly before the first packet is in
the first slice, what was read behind the last slice is left out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from skewscope.core.directory import Directory
from skewscope.core.features import Slice
from skewscope.core.schemas import SAMPLES
from skewscope.core.tables import Array, Heard, Schema, Table

TICK_NS = 100_000_000
"""Width of a slice. One decode step takes 5-100 ms (docs/testbed.md 3), so a slice holds at least one of
the slow ones and an onset is dated by its sample, not by its slice."""

MAX_IDLE_SLICES = 100
"""Empty slices made in a row (10 s): silence must be seen to pass, but a capture with a gap of a
day, or a clock that leapt, must not cost a million slices."""

LOOK_BACK_NS = 600_000_000_000
"""How much older than the first packet what stands beside captures may be (10 min): a baseline."""


_EMPTY = {schema.name: schema.empty() for schema in SAMPLES}
"""Most tables of most slices: made once."""


@dataclass
class _Pending:
    """Tables of one tap that no slice has taken yet, per schema name."""

    source: Iterator[dict[str, Table]]
    wanted: frozenset[str]
    queues: dict[str, deque[tuple[Table, Array]]] = field(default_factory=dict)
    reached_ns: int = -1
    ended: bool = False

    def pull(self) -> None:
        """Take the next batch from the tap."""
        batch = next(self.source, None)
        if batch is None:
            self.ended = True
            return
        for name, table in batch.items():
            if len(table) and name in self.wanted:
                # The running maximum makes "how far is time" monotonic under small steps back.
                self.queues.setdefault(name, deque()).append((table, np.maximum.accumulate(table["ts_ns"])))
        packets = batch.get("packets")
        if packets is not None and len(packets):
            self.reached_ns = max(self.reached_ns, int(packets["ts_ns"].max()))
        if isinstance(batch, Heard):
            self.reached_ns = max(self.reached_ns, batch.reached_ns)

    def reach(self, end_ns: int) -> None:
        """Take batches until everything before `end_ns` is here."""
        while not self.ended and self.reached_ns < end_ns:
            self.pull()

    def drop(self, before_ns: int) -> None:
        """Leave out what is older than `before_ns`."""
        while True:
            for name in self.queues:  # each time anew: years of it must not pile up
                self.cut(name, before_ns)
            if self.ended or self.reached_ns >= before_ns:
                return
            self.pull()

    def first_ns(self) -> int | None:
        """Return the time of the earliest pending row."""
        heads = [int(q[0][1][0]) for q in self.queues.values() if q]
        return min(heads, default=None)

    def cut(self, name: str, end_ns: int) -> list[Table]:
        """Remove and return the rows of one schema that belong before `end_ns`."""
        queue = self.queues.get(name)
        parts: list[Table] = []
        while queue:
            table, reach = queue[0]
            rows = int(np.searchsorted(reach, end_ns))
            if rows:
                parts.append(table.take(slice(0, rows)))
            if rows < len(table):
                queue[0] = (table.take(slice(rows, None)), reach[rows:])
                break
            queue.popleft()
        return parts


def slices(
    taps: Sequence[Iterator[dict[str, Table]]],
    directory: Directory,
    *,
    beside: Sequence[Iterator[dict[str, Table]]] = (),
    schemas: Sequence[Schema] = SAMPLES,
    tick_ns: int = TICK_NS,
    max_idle: int = MAX_IDLE_SLICES,
) -> Iterator[Slice]:
    """Yield slices in event-time order until every tap has ended; `beside` joins what taps begin and end.

    Without taps, those beside are the taps.
    """
    if not taps:
        taps, beside = beside, ()
    wanted = frozenset(s.name for s in schemas)
    pending = [_Pending(source, wanted) for source in taps]
    others = [_Pending(source, wanted) for source in beside]
    start: int | None = None
    idle = 0
    while True:
        end = None if start is None else start + tick_ns
        for tap in pending:
            tap.reach(0 if end is None else end)
        firsts = [first for tap in pending if (first := tap.first_ns()) is not None]
        if not firsts and all(tap.ended for tap in pending):
            return
        if start is None:
            if firsts:
                start = min(firsts)
                for other in others:
                    other.drop(start - LOOK_BACK_NS)
            else:  # live taps have told the time, and nothing else yet
                for tap in pending:
                    if not tap.ended:
                        tap.pull()
            continue
        assert end is not None
        if not firsts or min(firsts) >= end:
            idle += 1
            if idle > max_idle and firsts:
                start += (min(firsts) - start) // tick_ns * tick_ns
                idle = 0
                continue
        else:
            idle = 0
        for other in others:
            other.reach(end)
        tables = {s.name: _cut_all([*pending, *others], s, end) for s in schemas}
        last = all(tap.ended and tap.first_ns() is None for tap in pending)
        yield Slice(start, end, tables, directory, last)
        start = end


def _cut_all(pending: Sequence[_Pending], schema: Schema, end_ns: int) -> Table:
    parts = [part for tap in pending for part in tap.cut(schema.name, end_ns)]
    if not parts:
        return _EMPTY[schema.name] if schema.name in _EMPTY else schema.empty()
    table = Table.concat(schema, parts)
    order = np.argsort(table["ts_ns"], kind="stable")
    return table if _sorted(order) else table.take(order)


def _sorted(order: Array) -> bool:
    return bool(np.all(order[1:] > order[:-1])) if len(order) > 1 else True
