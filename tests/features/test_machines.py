"""Processes that share a host: which of them are late together."""

import numpy as np

from skewscope.core.directory import Directory
from skewscope.core.features import FeatureRows, Slice
from skewscope.features.machines import LATE_RATIO, Machines

HOST, OTHER = "10.0.0.1", "10.0.0.2"
SLICE = Slice(0, 100_000_000, {}, Directory())


def machines(members=(), endpoints=()):
    """members: (host, excess ratio, late rounds); endpoints: (key, chunk gap ratio)."""
    member = FeatureRows(
        "member",
        [m[0] for m in members],
        {
            "excess_ratio": np.array([m[1] for m in members], dtype=np.float64),
            "late_rounds": np.array([m[2] for m in members], dtype=np.float64),
        },
    )
    endpoint = FeatureRows(
        "endpoint",
        [e[0] for e in endpoints],
        {"chunk_gap_ratio": np.array([e[1] for e in endpoints], dtype=np.float64)},
    )
    rows = Machines().update(SLICE, {"member": member, "endpoint": endpoint})
    late = rows.columns["late_processes"].tolist()
    return dict(zip(rows.keys, zip(rows.columns["processes"].tolist(), late, strict=True), strict=True))


def test_a_host_with_one_process_says_nothing():
    assert machines([(HOST, 0.5, 3)]) == {}
    assert machines([], [(f"{HOST}:8000", 3.0)]) == {}
    assert machines() == {}


def test_a_rank_and_its_own_endpoint_are_one_process():
    assert machines([(HOST, 0.5, 3)], [(f"{HOST}:8000", 3.0)]) == {}


def test_two_endpoints_on_one_host():
    both = [(f"{HOST}:8000", LATE_RATIO), (f"{HOST}:8001", 1.0)]
    assert machines([], both) == {HOST: (2.0, 1.0)}
    assert machines([], [(k, 3.0) for k, _ in both]) == {HOST: (2.0, 2.0)}


def test_hosts_are_apart():
    assert machines([], [(f"{HOST}:8000", 3.0), (f"{OTHER}:8000", 3.0)]) == {}


def test_a_rank_beside_another_engine():
    got = machines([(HOST, 0.5, 3)], [(f"{HOST}:8000", 1.0), (f"{HOST}:8001", 3.0)])
    assert got == {HOST: (2.0, 2.0)}


def test_what_was_not_judged_does_not_count():
    assert machines([(HOST, np.nan, 0)], [(f"{HOST}:8000", 3.0)]) == {}
    assert machines([], [(f"{HOST}:8000", np.nan), (f"{HOST}:8001", 3.0)]) == {}


def test_brackets_of_an_address_are_taken_off():
    assert machines([], [("[2001:db8::1]:80", 3.0), ("[2001:db8::1]:81", 1.0)]) == {"2001:db8::1": (2.0, 1.0)}
