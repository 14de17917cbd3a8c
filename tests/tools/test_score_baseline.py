import pytest

from skewscope.core.scenario import Scenario
from skewscope.lab import synth
from tools import long_day, score_baseline, testbed

DAY = long_day.Day(24, 1000, [("c20", "10.0.0.3", 86400.1, 86400.9)], "10.0.0.3", [100.0, 101.0])


def test_the_page_counts_both_columns():
    rows = [
        ("delay", "c23", "c23 10.0.0.3", "nothing: **nothing was found**", "0.05 s, 9"),
        ("loss", "c25", "c25 x", "c25 x", "0.05 s, 9"),
    ]
    page = score_baseline.page(rows, [2, 1], "2026-01-01", DAY)
    assert "**2 of 2 right**" in page
    assert "**1 of 2 right**" in page
    assert page.count("| delay | c23 |") == 1
    assert "c20 10.0.0.3, onset +0.10 s" in page


def test_without_samples_it_says_so(monkeypatch, capsys):
    monkeypatch.delenv("SKEWSCOPE_SAMPLES", raising=False)
    assert score_baseline.main([]) == 3
    assert "SKEWSCOPE_SAMPLES" in capsys.readouterr().err


@pytest.mark.slow
def test_what_remains_of_a_fault_is_counted(tmp_path):
    truth = synth.write(Scenario("steady", "healthy", 0.5, 1), tmp_path)
    first_s = truth["first_sample_ns"] / 1e9

    def left(culprit):
        fact = testbed.Truth(("c20",), (), (), culprit, first_s - 0.25, first_s + 0.2)
        after, sent = score_baseline.remains(tmp_path, fact).split(" s, ")
        return float(after), int(sent)

    assert left("192.0.2.9") == (0.25, 0)
    after, sent = left(truth["hosts"]["n1"])
    assert after == 0.25
    assert sent > 10
