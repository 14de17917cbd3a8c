import csv
import os
from pathlib import Path

import numpy as np
import pytest

from skewscope.features.counter_sense import is_blind, link_share, path_errors, seen_share

NAN = np.nan


def test_only_the_requester_tells_of_errors():
    got = path_errors(np.array([8.0, 0.0, NAN, NAN, 0.0]), np.array([0.0, 0.0, 0.0, 1.0, 1.0]))
    assert got[:2].tolist() == [8.0, 0.0]
    assert np.isnan(got[2])  # the responder is clean, and nobody read the requester
    assert got[3:].tolist() == [1.0, 1.0]


@pytest.mark.samples
@pytest.mark.skipif(
    not os.environ.get("SKEWSCOPE_SAMPLES"), reason="SKEWSCOPE_SAMPLES names no folder with recorded samples"
)
def test_a_dead_queue_pair_as_both_ends_counted_it():
    file = Path(os.environ["SKEWSCOPE_SAMPLES"]) / "counters/rdma_fault_retry_exc_qp_err_hwcounters.csv"
    rows = [r for r in csv.reader(file.read_text().splitlines()) if len(r) == 5 and r[0] != "side"]
    errors = ("local_ack_timeout_err", "roce_adp_retrans", "req_transport_retries_exceeded")
    for name in errors:
        client = np.array([float(r[4]) for r in rows if r[:2] == ["client", name]])
        server = np.array([float(r[4]) for r in rows if r[:2] == ["server", name]])
        assert len(client) >= 7
        assert (client > 0).all(), name
        assert (server == 0).all(), name
        assert (path_errors(client[:7], server[:7]) > 0).all()
        assert np.isnan(path_errors(np.full(7, NAN), server[:7])).all()


def test_a_slow_idle_link_says_nothing_and_a_narrow_one_does():
    share = link_share(
        np.array([32e9, 2.5e9, 2.5e9, 2.5e9, 32e9]),
        np.full(5, 32e9),
        np.array([16.0, 16.0, 16.0, 8.0, 8.0]),
        np.full(5, 16.0),
        np.array([True, False, True, False, True]),
    )
    assert share[0] == 1.0
    assert np.isnan(share[1])
    assert share[2:].tolist() == [2.5 / 32, 0.5, 0.5]
    assert np.isnan(link_share(*(np.array([v]) for v in (8e9, 0.0, 4.0, 0.0)), np.array([True]))).all()


def test_a_tap_must_see_what_its_port_moves():
    tap, port = np.array([0.0, 9e8, 0.0, 500.0]), np.array([1e9, 1e9, 1e3, 1e9])
    assert is_blind(tap, port).tolist() == [True, False, False, True]
    assert np.isnan(seen_share(tap, port)[2])
