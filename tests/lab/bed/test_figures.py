"""Figures from logs: steps, entry lags, requests with correct waits, visibility."""

import math

import pytest

from skewscope.lab.bed import figures
from skewscope.lab.bed.figures import Span

MS = 1_000_000


def step(number, start_ms, end_ms, prefill=0, decode=4, enter_us=()):
    return {
        "step": number, "kind": 3, "prefill": prefill, "decode": decode,
        "start_ns": start_ms * MS, "end_ns": end_ms * MS, "enter_us": list(enter_us),
    }  # fmt: skip


def request(due, first, gaps_ms=(), ended="complete"):
    end = None if first is None else first + sum(gaps_ms)
    return {
        "due_ns": due * MS, "sent_ns": due * MS, "first_ns": None if first is None else first * MS,
        "end_ns": None if end is None else end * MS, "prompt": 16, "answer": 4, "bytes": 10, "ended": ended,
        "gaps_us": [g * 1000 for g in gaps_ms],
    }  # fmt: skip


def span(start_ms, end_ms, counted=None):
    return Span(start_ms * MS, end_ms * MS, counted or {})


def test_a_step_lasts_to_the_next_start_and_prefills_and_idle_time_are_left_out():
    log = [
        step(0, 0, 45),
        step(1, 50, 90, prefill=16),
        step(2, 200, 240),
        step(3, 260, 300),
        step(4, 900, 940),
    ]
    found = figures.steps([log], span(0, 1000))
    assert found["step_p50_ms"] in (50, 60)
    assert found["step_p95_ms"] == 60
    assert found["step_max_ms"] == 45
    assert found["steps_per_s"] == pytest.approx(5)
    assert found["batch_mean"] == pytest.approx(21 / 5)


def test_a_step_that_hangs_over_the_whole_stretch_is_the_longest():
    log = [step(0, 0, 50), step(1, 60, 5000)]
    assert figures.steps([log], span(1000, 4000))["step_max_ms"] == 4940


def test_the_share_of_replicas_is_largest_over_smallest():
    a = [step(k, k * 10, k * 10 + 9, decode=6) for k in range(10)]
    b = [step(k, k * 10, k * 10 + 9, decode=2) for k in range(10)]
    assert figures.steps([a, b], span(0, 100))["replica_share"] == 3


def test_entry_lag_is_last_minus_first_on_one_clock():
    a = [step(k, 100 * k, 100 * k + 50, enter_us=[10_000, 30_000]) for k in range(20)]
    b = [step(k, 100 * k + 1, 100 * k + 50, enter_us=[14_000, 29_000]) for k in range(20)]
    assert figures.entries([a, b], span(0, 2000)) == pytest.approx(5.0)


def test_waits_count_from_the_due_time_and_unanswered_requests_to_the_end():
    log = [request(100, 150), request(200, 260), request(300, None, ended="open")]
    log[0]["sent_ns"] = 140 * MS  # sent late: the wait still began when it was due
    found = figures.requests(log, span(0, 1000))
    assert found["ttft_p50_ms"] == 60
    assert found["ttft_p95_ms"] == 700
    assert found["requests"] == 3


def test_gaps_are_counted_where_they_end():
    log = [request(0, 100, gaps_ms=(50, 50, 900, 50))]
    found = figures.requests(log, span(0, 300))
    assert found["gap_max_ms"] == 50
    assert figures.requests(log, span(1000, 1300))["gap_max_ms"] == 900


def test_only_complete_answers_are_goodput_and_refusals_are_failures():
    log = [request(0, 10, (5,)), request(0, 10, (5,), ended="hung_up"), request(0, None, ended="refused")]
    found = figures.requests(log, span(0, 1000))
    assert found["goodput_rps"] == 1
    assert found["failed"] == 1


def test_counts_sum_the_kernels_counters():
    assert figures.counts(span(0, 1, {"RetransSegs": 7, "OutRsts": 1}))["retransmissions"] == 7


def test_an_effect_is_shown_by_a_rise_a_fall_or_an_excess():
    fault, paired = {"a": 12.0, "b": 4.0, "n": 9.0}, {"a": 10.0, "b": 10.0, "n": 2.0}
    assert figures.shown(fault, paired, {"a": 1.2}, {})
    assert not figures.shown(fault, paired, {"a": 1.3}, {})
    assert figures.shown(fault, paired, {"b": 0.5}, {})
    assert not figures.shown(fault, paired, {"b": 0.3}, {})
    assert figures.shown(fault, paired, {}, {"n": 7})
    assert not figures.shown(fault, paired, {}, {"n": 8})
    assert not figures.shown({}, {}, {"a": 1.0}, {})


def test_heartbeats_transfers_probes_and_pages_are_counted_in_the_stretch():
    beats = [{"ts_ns": t * MS} for t in (0, 100, 900, 1000, 1100)]
    assert figures.beats([beats], span(0, 1200))["beat_gap_ms"] == 800
    moved = [{"start_ns": t * MS, "end_ns": (t + 30) * MS} for t in (10, 20, 5000)]
    assert figures.transfers(moved, span(0, 1000))["transfer_p50_ms"] == 30
    probes = [{"ts_ns": t * MS, "health": h} for t, h in ((1, 200), (2, 503), (3, 0), (2000, 0))]
    assert figures.health(probes, span(0, 1000))["failed_probes"] == 2
    texts = [(1 * MS, "a"), (2 * MS, "a"), (3 * MS, "b"), (4 * MS, "b"), (2000 * MS, "b")]
    assert figures.pages(texts, span(0, 1000))["stale_pages"] == 2


def test_quantiles_and_ratios_of_nothing_are_unknown():
    assert math.isnan(figures.quantile([], 0.5))
    assert math.isnan(figures.ratio({"a": 1.0}, {"a": 0.0}, "a"))


def test_a_log_cut_short_loses_its_last_line_only(tmp_path):
    file = tmp_path / "x.jsonl"
    file.write_text('{"a": 1}\n{"a": 2}\n{"a": ')
    assert figures.rows(file) == [{"a": 1}, {"a": 2}]
    assert figures.rows(tmp_path / "none") == []
