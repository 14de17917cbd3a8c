"""What is remembered of links: sums over windows, and the last copy of each size."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from skewscope.features.link_state import RECENT, Pair, latest, short


def test_a_pair_sums_the_latest_windows_only():
    pair = Pair()
    for n in range(RECENT + 3):
        pair.count(n, 10.0)
    assert (pair.lost, pair.segments) == (sum(range(3, RECENT + 3)), 10.0 * RECENT)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, (1 << 32) - 1), st.integers(0, 9))))
def test_the_last_copy_of_each_size_is_found(copies):
    rows = sorted(copies, key=lambda c: (c[0], c[2]))
    host, size, times = (np.array([row[k] for row in rows], dtype=np.int64) for k in range(3))
    wanted = {}
    for h, nbytes, ts in rows:
        wanted[h, nbytes] = ts
    assert {(h, n): ts for h, n, ts in latest(host, size, times)} == wanted


def test_ids_are_shortened_only_where_they_fit():
    assert short(np.array([1, 65_535])).dtype == np.uint16
    assert short(np.array([1, 65_536])).tolist() == [1, 65_536]
    assert len(short(np.zeros(0, np.int64))) == 0
