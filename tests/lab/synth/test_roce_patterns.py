"""Stages and experts over RoCE: what the captures show is what the truth says."""

from __future__ import annotations

import numpy as np
import pytest

from skewscope.app.pipeline import tables
from skewscope.lab.synth.roce_patterns import Pattern, write
from skewscope.lab.synth.roce_ring import Ring

RING = Ring(ranks=3, steps=6, collectives=2, channels=1, own_s=1e-3, message_bytes=30_000, seed=3)


def data_of(folder, pattern):
    """Return (sizes of the data messages at each host's tap, truth)."""
    truth = write(pattern, folder)
    sizes = []
    for host in sorted({*truth["hosts"]}):
        m = tables([folder / f"h{host}.pcap"])["messages"]
        sizes.append(m["nbytes"][(m["framing"] == 3) & (m["kind"] <= 1)])
    return sizes, truth


def test_each_stage_sees_each_micro_batch_once_in_and_once_out(tmp_path):
    sizes, truth = data_of(tmp_path, Pattern(RING, True, micro_batches=2))
    assert truth["synthetic"]
    assert [np.count_nonzero(s == 30_000) for s in sizes] == [12, 24, 12]
    assert [np.count_nonzero(s == 256) for s in sizes] == [12, 0, 12]
    begun = np.array(truth["begun_ns"])
    assert begun.shape == (12, 3)
    assert (np.diff(begun, axis=1) > 0.5e6).all()


def test_experts_exchange_all_to_all_and_a_hot_one_gets_its_share(tmp_path):
    sizes, _ = data_of(tmp_path, Pattern(RING, False, hot=1, hot_ratio=2.0))
    assert [len(s) for s in sizes] == [6 * 2 * 4] * 3
    assert sorted(set(np.concatenate(sizes).tolist())) == [
        pytest.approx(30_000 / 3 / 6, abs=1),
        pytest.approx(2 * 30_000 / 3 / 3, abs=1),
    ]
