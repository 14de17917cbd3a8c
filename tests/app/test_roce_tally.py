"""Counts of RoCE packets by kind: each opcode in one kind, several taps, and what was cut off."""

import numpy as np
import pytest

from skewscope.app.roce_tally import RoceTally
from skewscope.core.schemas import ROCE
from skewscope.core.tables import Table
from skewscope.wire.roce_codes import AETH, CNP, FLUSH, HEADERS, RESYNC

KINDS = ("sends", "writes", "reads", "atomics", "cnps", "acks")


def rows(opcodes, **columns):
    n = len(opcodes)
    filled = {"opcode": np.array(opcodes), "pkey": np.full(n, 0xFFFF), "qp": np.arange(n)}
    return Table(ROCE, filled | {k: np.array(v) for k, v in columns.items()})


@pytest.mark.parametrize("opcode", [o for o in range(256) if HEADERS[o] and o & 31 not in (RESYNC, FLUSH)])
def test_each_opcode_is_of_one_kind(opcode):
    tally = RoceTally()
    tally.add(rows([opcode], has=[AETH if opcode & 31 == 17 and opcode != CNP else 0]))
    counts = tally.counts([0])
    assert sum(counts[k] for k in KINDS) == counts["packets"] == 1


def test_answers_by_syndrome():
    tally = RoceTally()
    tally.add(rows([17] * 4, has=[AETH] * 4, syndrome=[0x1F, 0x2C, 0x60, 0x62]))
    counts = tally.counts([0])
    assert (counts["acks"], counts["rnr_naks"], counts["naks"]) == (1, 1, 2)


def test_cut_and_foreign_packets():
    tally = RoceTally()
    tally.add(rows([0, 10, 0], pkey=[0, 1, 0], fault=[1, 1, 4], qp=[0, 9, 0]))
    counts = tally.counts([0])
    assert (counts["packets"], counts["cut"], counts["not_roce"]) == (2, 2, 1)
    assert (counts["sends"], counts["writes"]) == (0, 1)


def test_taps_are_kept_apart_and_joined():
    tally = RoceTally(checked=True)
    tally.add(rows([10, 10, 10], tap=[0, 1, 1], qp=[5, 5, 6], icrc=[1, 2, 0]))
    assert tally.counts([0])["writes"] == 1
    assert tally.counts([2]) == {}
    both = tally.counts([0, 1])
    assert (both["writes"], both["queue_pairs"]) == (3, 2)
    assert (both["icrc_right"], both["icrc_wrong"], both["icrc_unknown"]) == (1, 1, 1)
