from __future__ import annotations

import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.wire import sse
from skewscope.wire.layout import FRAMER


def count(pieces: list[bytes]) -> int:
    rows = np.zeros(1, FRAMER)
    sse.reset(rows[0])
    for piece in pieces:
        data = np.frombuffer(piece, np.uint8).copy()
        data.flags.writeable = False
        sse.scan(rows[0], data, 0, len(data))
    return int(rows[0]["events"])


def reference(text: bytes) -> int:
    """The standard's line rules, on the whole text: a blank line behind a data field is an event."""
    events = data = 0
    for line in re.split(rb"\r\n|\n|\r", text)[:-1]:
        if line == b"":
            events += data
            data = 0
        elif line.startswith(b"data:"):
            data = 1
    return events


text = st.lists(
    st.sampled_from([b"data:", b"data", b":", b"\n", b"\r\n", b"\r", b" x", b"d", b"id: 1"]), max_size=25
)


@settings(max_examples=200, deadline=None)
@given(text, st.integers(0, 60))
def test_agrees_with_the_line_rules_in_any_two_pieces(words: list[bytes], cut: int) -> None:
    whole = b"".join(words)
    assert count([whole[:cut], whole[cut:]]) == reference(whole)


def test_spoilt_line_counts_only_from_the_next_line_on() -> None:
    rows = np.zeros(1, FRAMER)
    sse.spoil(rows[0])
    data = np.frombuffer(b"ta: 1\n\ndata: 2\n\n", np.uint8).copy()
    data.flags.writeable = False
    sse.scan(rows[0], data, 0, len(data))
    assert rows[0]["events"] == 1
