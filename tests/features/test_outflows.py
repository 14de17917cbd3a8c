"""What leaves a host of the cluster for somebody with no part in it."""

from __future__ import annotations

import numpy as np
import pytest

from skewscope.core.directory import Directory
from skewscope.core.features import FeatureRows, Slice
from skewscope.features.graph import GraphRows
from skewscope.features.outflows import Outflows
from skewscope.features.transport import PairRows

TICK = 100_000_000
RANK, MATE, STRANGER, CLIENT = 1, 2, 3, 4
NAMES = Directory(addresses=["-", "rank", "mate", "stranger", "client"])


def run(windows, asks=(CLIENT,), tapped=(RANK, MATE)):
    """Feed windows of {(a, b): bytes}; return the columns by host of each, and the onsets of the last."""
    family, found, onset = Outflows(), [], {}
    member = np.array([-1, 1, 1, -1, -1])
    roles = GraphRows(
        "host",
        [],
        {},
        member=member,
        serves=np.zeros(5, dtype=bool),
        asks=np.isin(np.arange(5), asks),
        own_tap=np.where(np.isin(np.arange(5), tapped), 0, -1),
    )
    for k, sent in enumerate(windows):
        pairs = PairRows(
            "pair", [""] * len(sent), {"bytes": np.array(list(sent.values()), dtype=float)},
            pair_of={key: i for i, key in enumerate(sent)},
        )  # fmt: skip
        rows: FeatureRows = family.update(
            Slice(k * TICK, (k + 1) * TICK, {}, NAMES), {"host": roles, "pair": pairs}
        )
        found.append({key: {n: v[i] for n, v in rows.columns.items()} for i, key in enumerate(rows.keys)})
        onset = dict(zip(rows.keys, rows.onset_ns["foreign_bytes"].tolist(), strict=True))
    return found, onset


def test_bytes_to_a_stranger_add_up():
    found, onset = run([{(RANK, MATE): 1e6}] * 5 + [{(RANK, MATE): 1e6, (RANK, STRANGER): 3e6}] * 20)
    assert found[4] == {}
    last = found[-1]["rank"]
    assert last["foreign_bytes"] == 60e6
    assert last["foreign_bps"] == pytest.approx(8 * 30e6)
    assert last["foreign_share"] == pytest.approx(0.75)
    assert last["foreign_s"] == pytest.approx(2.0)
    assert onset == {"rank": 5 * TICK}


@pytest.mark.parametrize("peer", [MATE, CLIENT])
def test_who_has_a_part_is_no_stranger(peer):
    assert run([{}] * 5 + [{(RANK, peer): 9e6}] * 5)[0][-1] == {}


def test_what_strangers_send_is_not_counted():
    assert run([{}] * 5 + [{(STRANGER, RANK): 9e6}] * 5)[0][-1] == {}


def test_after_a_pause_it_is_another_transfer():
    found, onset = run([{}] * 5 + [{(RANK, STRANGER): 9e6}] * 3 + [{}] * 30 + [{(RANK, STRANGER): 1e6}])
    assert found[-1]["rank"]["foreign_bytes"] == 1e6
    assert onset == {"rank": 38 * TICK}


def test_a_trickle_does_not_keep_a_transfer_alive():
    found, _ = run([{}] * 5 + [{(RANK, STRANGER): 9e6}] * 3 + [{(RANK, STRANGER): 100.0}] * 30)
    assert found[7]["rank"]["foreign_bytes"] == 27e6
    assert found[-1].get("rank", {"foreign_bytes": 0.0})["foreign_bytes"] < 1e4


def test_a_stranger_that_begins_to_ask_is_a_client():
    assert run([{}] * 5 + [{(RANK, STRANGER): 9e6}] * 3, asks=(CLIENT, STRANGER))[0][-1] == {}


def test_a_host_with_a_tap_of_its_own_is_one_of_ours():
    """A second interface of a node carries its transfers under another address."""
    assert run([{}] * 5 + [{(RANK, STRANGER): 9e6}] * 3, tapped=(RANK, STRANGER))[0][-1] == {}


def test_to_whom_a_host_sends_when_the_capture_begins_is_usual():
    assert run([{(RANK, STRANGER): 9e6}] * 20)[0][-1] == {}
