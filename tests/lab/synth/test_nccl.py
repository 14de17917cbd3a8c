"""Rings of NCCL over sockets: who sends to whom."""

from __future__ import annotations

import numpy as np
import pytest

from skewscope.core.directory import Directory
from skewscope.core.scenario import Scenario, Workload
from skewscope.lab import synth
from skewscope.sources.captures import open_captures


@pytest.mark.parametrize(("ranks", "nbytes"), [(2, 4096), (4, 16_384), (3, 90_000)])
def test_each_rank_sends_to_the_next_one_only(tmp_path, ranks, nbytes):
    workload = Workload(framing="nccl", ranks=ranks, own_s=0.01, message_bytes=nbytes)
    truth = synth.write(Scenario("ring", "healthy", 1.5, 5, workload), tmp_path)
    hosts = [truth["hosts"][f"n{i}"] for i in range(ranks)]
    for i, host in enumerate(hosts):
        directory = Directory()
        (capture,) = open_captures([tmp_path / f"n{i}.pcap"], directory, lambda problem: None)
        tables = [t["messages"] for t in capture.batches()]
        capture.close()
        name = np.array(directory.addresses)
        nccl = [t.take(t["framing"] == 2) for t in tables]
        src, dst = (name[np.concatenate([t[side] for t in nccl])] for side in ("src", "dst"))
        assert np.count_nonzero(src == host) > 50
        assert set(dst[src == host]) == {hosts[(i + 1) % ranks]}
        assert set(src[dst == host]) == {hosts[i - 1]}
