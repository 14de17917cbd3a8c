"""What comes into the cluster from one source, and into how many hosts at once."""

from __future__ import annotations

import numpy as np
import pytest

from skewscope.core.directory import Directory
from skewscope.core.features import Slice
from skewscope.features.graph import GraphRows
from skewscope.features.inflows import Inflows
from skewscope.features.transport import PairRows

TICK = 100_000_000
RANK, MATE, STORE, CLIENT = 1, 2, 3, 4
NAMES = Directory(addresses=["-", "rank", "mate", "store", "client"])


def run(windows):
    """Feed windows of {(a, b): bytes}; return the columns by source of each, and the onsets of the last."""
    family, found, onset = Inflows(), [], {}
    roles = GraphRows(
        "host",
        [],
        {},
        member=np.array([-1, 1, 1, -1, -1]),
        serves=np.zeros(5, dtype=bool),
        asks=np.arange(5) == CLIENT,
    )
    for k, sent in enumerate(windows):
        keys = {key: i for i, key in enumerate(sent)}
        size = np.array(list(sent.values()), dtype=float)
        pairs = PairRows("pair", [""] * len(sent), {"bytes": size}, pair_of=keys)
        rows = family.update(Slice(k * TICK, (k + 1) * TICK, {}, NAMES), {"host": roles, "pair": pairs})
        found.append({key: {n: v[i] for n, v in rows.columns.items()} for i, key in enumerate(rows.keys)})
        onset = dict(zip(rows.keys, rows.onset_ns["fetchers"].tolist(), strict=True))
    return found, onset


def test_hosts_that_fetch_at_once_are_counted_and_dated_by_the_second():
    alone, both = {(STORE, RANK): 1e6}, {(STORE, RANK): 1e6, (STORE, MATE): 1e6}
    found, onset = run([alone] * 5 + [both] * 10)
    assert found[4]["store"]["fetchers"] == 1
    assert found[-1]["store"] == {
        "fetchers": 2,
        "fetched_bytes": 12.5e6,
        "fetched_spread": 1.5,
        "fetched_total_bytes": 25e6,
    }
    assert onset == {"store": 5 * TICK}


@pytest.mark.parametrize("source", [MATE, CLIENT])
def test_who_has_a_part_is_no_store(source):
    assert run([{(source, RANK): 9e6}] * 5)[0][-1] == {}


def test_what_leaves_is_not_fetched():
    assert run([{(RANK, STORE): 9e6}] * 5)[0][-1] == {}


def test_little_is_not_fetched():
    assert run([{(STORE, RANK): 1e4}] * 5)[0][-1] == {}


def test_a_fetch_that_ended_is_over():
    found, _ = run([{(STORE, RANK): 9e6}] * 5 + [{}] * 12)
    assert found[6]["store"]["fetchers"] == 1
    assert found[-1] == {}
