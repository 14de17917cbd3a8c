"""The log of the test bed's own engine: a line of JSON for each step, with each all-reduce's begin and end.

Its times are of the same clock as the packets, so it is what packets are judged by; it is an event source
like any engine's log.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from skewscope.core.tables import Table
from skewscope.sources.events import Events, entity_of, whole
from skewscope.sources.format import Format, Origin, lines
from skewscope.sources.formats.nccl_json import said

STEPS = {1: "prefill", 2: "decode"}
MOST_COLLECTIVES = 1 << 12


def _pairs(value: Any) -> list[tuple[int, int]]:
    """Return begin and end of each all-reduce."""
    listed = value[:MOST_COLLECTIVES] if isinstance(value, list) else []
    pairs = [(whole(p[0]), whole(p[1])) for p in listed if isinstance(p, list) and len(p) == 2]
    return [(begin, end) for begin, end in pairs if 0 < begin <= end]


def read(stream: BinaryIO, origin: Origin) -> Iterator[dict[str, Table]]:
    """Yield each step and each of its all-reduces."""
    events, bad = Events(origin), 0
    for number, text in lines(stream, origin):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        begin = whole(value.get("t0")) if isinstance(value, dict) else 0
        if not isinstance(value, dict) or begin <= 0:
            bad += bool(text.strip())
            continue
        step, where = whole(value.get("step")), entity_of("", origin.about())
        pairs = _pairs(value.get("ar"))
        events.add(
            begin, number, where, "engine.step", step, end_ns=max(whole(value.get("t1")), 0),
            sort=STEPS.get(whole(value.get("op"))), tokens=said(value, "n"), collectives=len(pairs),
        )  # fmt: skip
        for entered, left in pairs:
            events.add(entered, number, where, "engine.all_reduce", step, end_ns=left)
        if events.full:
            yield events.take()
    if bad:
        origin.notes.append(f"{bad} lines are no steps and were left out")
    yield events.take()


_SHAPE = re.compile(rb'^\{"step": ?\d+, ?"op": ?\d+, ?"n": ?\d+, ?"t0": ?\d+')

FORMAT = Format(
    "bed steps", "steps of the test bed's engine", lambda head, name: 3 * bool(_SHAPE.match(head)), read
)
