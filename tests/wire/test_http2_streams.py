from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from skewscope.core.jit import njit
from skewscope.core.tables import Array
from skewscope.wire import http2_streams as streams
from skewscope.wire.http2_words import MESSAGES, OTHER
from skewscope.wire.layout import FRAMER, H2STREAM, Rows


@njit
def act(framers: Rows, h2: Rows, steps: Array, found: Array) -> None:
    """Enter (0), find (1) or drop (2) streams; found: 1 where a find succeeded."""
    f = framers[0]
    for k in range(len(steps)):
        what, stream = steps[k, 0], steps[k, 1]
        if what == 0:
            streams.enter(f, h2, 5, stream, MESSAGES)
        elif what == 1:
            found[k] = streams.find(f, h2, 5, stream) > 0
        elif what == 2:
            streams.drop(f, h2, stream)
        else:
            streams.enter(f, h2, 5, stream, OTHER)


def pool(size: int) -> np.ndarray:
    h2 = np.zeros(size + 1, H2STREAM)
    h2["next"][:-1] = np.arange(1, size + 1)
    return h2


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 12)), max_size=60), st.sampled_from([4, 40]))
def test_against_a_dictionary(steps: list[tuple[int, int]], size: int) -> None:
    h2, framers = pool(size), np.zeros(1, FRAMER)
    found = np.zeros(len(steps), np.int64)
    act(framers, h2, np.array(steps, np.int64).reshape(-1, 2), found)
    live: set[int] = set()
    for k, (what, stream) in enumerate(steps):
        if what == 1:
            assert found[k] == (stream in live)
        else:
            live.discard(stream)
            if what == 0 and len(live) < size:
                live.add(stream)
    assert framers[0]["count"] == h2[0]["id"] == len(live)
    kept, at = [], framers[0]["first"]
    while at:
        kept.append(int(h2[at]["id"]))
        at = h2[at]["next"]
    assert sorted(kept) == sorted(live)
