"""The HTTP/2 streams followed: a pool of rows, linked per direction, the latest first.

A stream is entered at its head and leaves at its end. It is followed for the events in its DATA only:
frames of streams that are not followed still make rows. Row 0 stands for none (layout.H2STREAM).

A list of hundreds is too long to walk for each frame, so the rows also hold hints: `hint` of row h tells
where the stream with hash h was found last. A hint may be wrong, and is checked.
"""

from __future__ import annotations

from skewscope.wire import sse
from skewscope.wire.http2_words import EVENTS, MESSAGES
from skewscope.wire.jit import inner
from skewscope.wire.layout import Row, Rows

MAX_STREAMS = 1024
"""Streams followed per direction; the one longest open makes room. Servers allow 100 to 1000 at a time."""


@inner
def find(f: Row, h2: Rows, way: int, stream: int) -> int:
    """Return the row of a stream of direction `way` (layout: stream 2 * slot + way), 0 if not followed."""
    if f["first"] == 0:
        return 0
    guess = ((stream >> 1) + way * 977) % len(h2)
    at: int = h2[guess]["hint"]
    if at > 0 and h2[at]["id"] == stream and h2[at]["owner"] == way:
        return at
    at = f["first"]
    while at > 0 and h2[at]["id"] != stream:
        at = h2[at]["next"]
    h2[guess]["hint"] = at
    return at


@inner
def drop(f: Row, h2: Rows, stream: int) -> None:
    """Forget a stream, if it is followed."""
    before = 0
    at = f["first"]
    while at > 0 and h2[at]["id"] != stream:
        before = at
        at = h2[at]["next"]
    if at == 0:
        return
    if before == 0:
        f["first"] = h2[at]["next"]
    else:
        h2[before]["next"] = h2[at]["next"]
    f["count"] -= 1
    h2[at]["owner"] = -1
    h2[at]["next"] = h2[0]["next"]
    h2[0]["next"] = at
    h2[0]["id"] -= 1


@inner
def drop_all(f: Row, h2: Rows) -> None:
    """Forget all streams of a direction."""
    while f["first"] > 0:
        drop(f, h2, h2[f["first"]]["id"])


@inner
def _drop_oldest(f: Row, h2: Rows) -> None:
    at = f["first"]
    while h2[at]["next"] > 0:
        at = h2[at]["next"]
    drop(f, h2, h2[at]["id"])


@inner
def enter(f: Row, h2: Rows, way: int, stream: int, content: int) -> None:
    """Follow a stream whose head names the content; without a free row it goes unfollowed."""
    drop(f, h2, stream)
    if content != EVENTS and content != MESSAGES:
        return
    if f["count"] >= MAX_STREAMS:
        _drop_oldest(f, h2)
    at = h2[0]["next"]
    if at == 0:
        return
    row = h2[at]
    h2[0]["next"] = row["next"]
    h2[0]["id"] += 1
    row["next"] = f["first"]
    f["first"] = at
    f["count"] += 1
    row["id"] = stream
    row["owner"] = way
    row["content"] = content
    row["known"] = 1
    row["got"] = 0
    row["size"] = 0
    row["left"] = 0
    row["probe"] = 0
    row["events"] = 0
    sse.reset(row)


@inner
def spoil(row: Row) -> None:
    """Unknown bytes passed: where messages and events begin is not known."""
    row["known"] = 0
    row["events"] = 0
    sse.spoil(row)


@inner
def spoil_all(f: Row, h2: Rows) -> None:
    """The same for all streams of a direction."""
    at = f["first"]
    while at > 0:
        spoil(h2[at])
        at = h2[at]["next"]
