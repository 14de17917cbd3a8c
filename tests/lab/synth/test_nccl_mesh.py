"""Stages and experts of NCCL over sockets: who sends what to whom."""

from __future__ import annotations

import numpy as np
import pytest

from skewscope.app.pipeline import tables
from skewscope.core.directory import Directory
from skewscope.core.scenario import Fault, Scenario, Workload
from skewscope.lab import synth
from skewscope.sources.captures import open_captures


def edges(folder, workload, *faults):
    """Return {(from, to): [sizes]} of the NCCL messages at the senders' taps, by rank."""
    truth = synth.write(Scenario("mesh", "healthy", 1.5, 5, workload, faults), folder)
    rank = {address: i for i, address in enumerate(truth["hosts"][f"n{k}"] for k in range(workload.ranks))}
    found = {}
    for i in range(workload.ranks):
        directory = Directory()
        (capture,) = open_captures([folder / f"n{i}.pcap"], directory, lambda problem: None)
        for m in [t["messages"] for t in capture.batches()]:
            for row in np.flatnonzero(m["framing"] == 2).tolist():
                a, b = (rank[directory.addresses[m[side][row]]] for side in ("src", "dst"))
                if a == i:
                    found.setdefault((a, b), []).append(int(m["nbytes"][row]))
        capture.close()
    return found


def test_stages_send_to_the_next_and_the_last_one_tells_the_first(tmp_path):
    found = edges(tmp_path, Workload(framing="nccl", pattern="chain", own_s=0.01, message_bytes=32_768))
    assert sorted(found) == [(0, 1), (1, 2), (2, 3), (3, 0)]
    assert np.median(found[1, 2]) > 4_000
    assert set(found[3, 0]) == {160}
    assert len(found[0, 1]) == pytest.approx(len(found[3, 0]), abs=20)


def test_experts_exchange_with_all_and_a_hot_one_gets_more(tmp_path):
    workload = Workload(framing="nccl", pattern="all_to_all", own_s=0.01, message_bytes=32_768)
    found = edges(tmp_path, workload, Fault("hot_expert", 0.0, 9.0, 2, 2.0))
    assert sorted(found) == [(a, b) for a in range(4) for b in range(4) if a != b]
    sent = {pair: sum(sizes) for pair, sizes in found.items()}
    to_hot, to_other = (sum(sent[a, b] for a in (0, 1)) for b in (2, 3))
    back = sum(sent[2, b] for b in (0, 1)) / sum(sent[3, b] for b in (0, 1))
    assert to_hot > 1.3 * to_other
    assert back == pytest.approx(to_hot / to_other, rel=0.25)


def test_tables_of_a_chain_name_no_other_framing(tmp_path):
    synth.write(
        Scenario("mesh", "healthy", 0.6, 5, Workload(framing="nccl", pattern="chain", own_s=0.01)), tmp_path
    )
    assert set(tables([tmp_path / "n1.pcap"])["messages"]["framing"].tolist()) == {2}
