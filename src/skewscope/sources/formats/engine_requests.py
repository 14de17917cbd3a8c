"""Requests one a line of JSON: of an engine (vLLM's own times) or of a client that measured itself.

Engine lines hold when a request arrived, in Unix time, and when it was queued, scheduled, and gave its
first and last token, on the clock of the machine. The two are tied together by the request that was queued
fastest after its arrival: every other time is late by what that one took.
Client lines are those of skewscope's test bed (`lab/bed/programs/client.py`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, BinaryIO

from skewscope.core.schemas import REQUESTS
from skewscope.core.tables import Table
from skewscope.sources.events import whole
from skewscope.sources.format import Format, Origin, RowList, lines

MOST_HELD = 1 << 17
"""Engine lines that the two clocks are tied by; what follows them is tied by the same."""
BATCH = 1 << 13
NAN = float("nan")
MOST_SECONDS = 9e9
"""What nanoseconds in 64 bits can tell, counted from 1970."""
Object = dict[str, Any]


def _seconds(value: Any) -> float:
    """Return a time in seconds, NaN where it is none."""
    good = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < MOST_SECONDS
    return float(value) if good else NAN


def _ns(seconds: float) -> int:
    """Return nanoseconds, 0 where the time is not known."""
    return round(seconds * 1e9) if 0 < seconds < MOST_SECONDS else 0


class _Requests:
    def __init__(self, origin: Origin) -> None:
        self.origin, self.rows = origin, RowList(REQUESTS)
        self._held: list[tuple[int, Object]] = []
        self._offset = NAN
        self.bad = 0

    def line(self, number: int, text: str) -> None:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            self.bad += bool(text.strip())
        elif "due_ns" in value:
            self._client(number, value)
        elif math.isnan(_seconds(value.get("arrival_time"))):
            self.bad += 1
        elif math.isnan(self._offset) and len(self._held) < MOST_HELD:
            self._held.append((number, value))
        else:
            self.tie()
            self._engine(number, value)

    def tie(self) -> None:
        """Tie the engine's clock to Unix time, and write what waited for that."""
        if math.isnan(self._offset):
            ahead = [_seconds(v.get("queued_ts")) - _seconds(v.get("arrival_time")) for _, v in self._held]
            self._offset = min((a for a in ahead if not math.isnan(a)), default=0.0)
        for number, value in self._held:
            self._engine(number, value)
        self._held = []

    def _add(self, number: int, ts_ns: int, end_ns: int, first_ns: int, queued_s: float, **more: Any) -> None:
        self.rows.add(
            ts_ns=ts_ns,
            source=self.origin.source,
            line=min(number, 2**32 - 1),
            entity=self.origin.directory.entities.id(self.origin.about()),
            end_ns=end_ns,
            first_ns=first_ns,
            queued_s=queued_s,
            prompt_tokens=_tokens(more.get("prompt")),
            output_tokens=_tokens(more.get("output")),
            cached_tokens=_tokens(more.get("cached")),
            status=more.get("status", 0),
            key=self.origin.directory.texts.id(str(more.get("key", ""))[:128]),
        )

    def _engine(self, number: int, v: Object) -> None:
        arrived, queued = _seconds(v.get("arrival_time")), _seconds(v.get("queued_ts"))
        scheduled, first, last = (
            _seconds(v.get(f"{n}_ts")) for n in ("scheduled", "first_token", "last_token")
        )
        self._add(
            number, _ns(arrived), _ns(last - self._offset), _ns(first - self._offset), scheduled - queued,
            prompt=v.get("input_toks"), output=v.get("output_toks"), cached=v.get("cached_toks"),
            key=v.get("request_id", ""), status=0 if math.isnan(last) else 200,
        )  # fmt: skip

    def _client(self, number: int, v: Object) -> None:
        due, first, end = (max(whole(v.get(k)), 0) for k in ("due_ns", "first_ns", "end_ns"))
        gaps = v.get("gaps_us")
        got = len(gaps) + 1 if isinstance(gaps, list) and first else 0
        # A refusal is an empty answer: which status it had is not in the line.
        status = {"complete": 200, "hung_up": -2, "open": 0}.get(str(v.get("ended")), -1)
        self._add(number, due, end, first, NAN, prompt=v.get("prompt"), output=got, status=status)

    def finish(self) -> None:
        had = bool(self._held)
        self.tie()
        if had:
            self.origin.notes.append(
                "the engine's clock was tied to Unix time by the request that was queued fastest"
            )
        if self.bad:
            self.origin.notes.append(f"{self.bad} lines are no requests and were left out")


def _tokens(value: Any) -> int:
    return min(max(whole(value), 0), 2**32 - 1)


def read(stream: BinaryIO, origin: Origin) -> Iterator[dict[str, Table]]:
    """Yield requests; those of a client count from when they were due."""
    requests = _Requests(origin)
    for number, text in lines(stream, origin):
        requests.line(number, text)
        if len(requests.rows) >= BATCH:
            yield requests.rows.take()
    requests.finish()
    yield requests.rows.take()


_ENGINE = re.compile(rb'^\{[^\n]*"arrival_time"\s*:[^\n]*"(?:queued|scheduled|first_token)_ts"\s*:')
_CLIENT = re.compile(rb'^\{[^\n]*"due_ns"\s*:[^\n]*"ended"\s*:')

FORMAT = Format(
    "requests",
    "requests of an engine or client, one JSON object a line",
    lambda head, name: 3 * bool(_ENGINE.match(head) or _CLIENT.match(head)),
    read,
)
