"""Comparing load generators: names, and when they differ."""

import pytest

from tools import load_cross_check

OWN = {
    "ttft_p50_ms": 50.0,
    "ttft_p95_ms": 60.0,
    "gap_p50_ms": 30.0,
    "gap_p95_ms": 33.0,
    "requests_per_s": 3.0,
    "busy": 0.5,
}


def test_vllms_figures_get_our_names():
    result = {
        "median_ttft_ms": 1,
        "p95_ttft_ms": 2,
        "median_itl_ms": 3,
        "p95_itl_ms": 4,
        "request_throughput": 5,
    }
    assert load_cross_check.named(result) == dict(zip(load_cross_check.FIGURES, range(1, 6), strict=True))


@pytest.mark.parametrize(
    ("other", "again", "differ"),
    [
        ({}, {}, []),
        ({"gap_p50_ms": 31.9}, {}, []),
        ({"gap_p50_ms": 32.1}, {}, ["gap_p50_ms"]),
        ({"gap_p50_ms": 35.0}, {"gap_p50_ms": 34.0}, []),
        ({"ttft_p50_ms": 47.4}, {}, ["ttft_p50_ms"]),
        ({"ttft_p95_ms": 900.0}, {}, []),
    ],
)
def test_a_median_outside_the_range_of_the_own_runs_is_named(other, again, differ):
    assert load_cross_check.outside(OWN, {**OWN, **other}, {**OWN, **again}) == differ


def test_the_page_says_what_differs():
    runs = {"own": OWN, "vllm": {**OWN, "gap_p50_ms": 90.0}, "again": OWN}
    assert "The medians differ in gap_p50_ms" in load_cross_check.page(runs)
    assert "| vllm | 50.00 | 60.00 | 90.00 | 33.00 | 3.00 | 50% |" in load_cross_check.page(runs)
