"""The metrics page: counts and histograms out of what happened."""

import pytest

from skewscope.lab.bed.programs import metrics
from skewscope.lab.bed.programs.metrics import Histogram, Served

STATE = {"running": 2, "waiting": 1, "usage": 0.25, "preemptions": 3}


@pytest.fixture
def clock(monkeypatch):
    """A clock that tests set."""

    class Clock:
        now = 100.0

    monkeypatch.setattr(metrics.time, "monotonic", lambda: Clock.now)
    return Clock


def values(page):
    return {k: float(v) for k, _, v in (x.rpartition(" ") for x in page.splitlines() if x[0] != "#")}


def test_a_histogram_counts_up_to_each_bound_inclusive():
    one = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 9.0):
        one.add(value)
    found = values("\n".join(one.lines("h")))
    assert [v for k, v in found.items() if "bucket" in k] == [2, 3, 4]
    assert found[f"h_count{{{metrics.LABELS}}}"] == 4
    assert found[f"h_sum{{{metrics.LABELS}}}"] == 12


def test_waits_of_a_request_are_those_between_its_tokens(clock):
    served = Served()
    timing = served.asked(prompt_tokens=16)
    for at in (100.25, 100.5, 101.0):
        clock.now = at
        timing.token()
    timing.end("length")
    page = values(served.page(STATE))
    for name, total, count in (
        ("time_to_first_token", 0.25, 1), ("inter_token_latency", 0.75, 2), ("e2e_request_latency", 1.0, 1),
    ):  # fmt: skip
        assert page[f"vllm:{name}_seconds_sum{{{metrics.LABELS}}}"] == pytest.approx(total)
        assert page[f"vllm:{name}_seconds_count{{{metrics.LABELS}}}"] == count
    assert page[f"vllm:generation_tokens_total{{{metrics.LABELS}}}"] == 3
    assert page[f"vllm:prompt_tokens_total{{{metrics.LABELS}}}"] == 16
    assert page[f"vllm:num_requests_waiting{{{metrics.LABELS}}}"] == 1


def test_an_aborted_request_has_no_latency(clock):
    served = Served()
    served.asked(1).end("abort")
    page = values(served.page(STATE))
    assert page[f'vllm:request_success_total{{finished_reason="abort",{metrics.LABELS}}}'] == 1
    assert page[f"vllm:e2e_request_latency_seconds_count{{{metrics.LABELS}}}"] == 0


def test_every_name_is_typed_once():
    lines = Served().page(STATE).splitlines()
    typed = [x.split()[2] for x in lines if x.startswith("# TYPE")]
    assert len(typed) == len(set(typed))
    for line in lines:
        if not line.startswith("#"):
            assert any(line.startswith(name) for name in typed)
