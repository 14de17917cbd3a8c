import pytest

from skewscope.core.report import Report
from tools import score_testbed, testbed


@pytest.mark.parametrize(("right", "of", "least"), [(22, 22, 0.8456), (0, 5, 0.0), (8, 10, 0.4439)])
def test_the_bound_of_a_share(right, of, least):
    """Against published Clopper-Pearson tables."""
    assert score_testbed.least_share(right, of) == pytest.approx(least, abs=1e-4)


@pytest.mark.parametrize(("count", "most"), [(0, 3.6889), (1, 5.5716), (10, 18.3904)])
def test_the_bound_of_a_count(count, most):
    """Against published Poisson tables."""
    assert score_testbed.most_events(count) == pytest.approx(most, abs=1e-4)


def test_a_healthy_row_and_a_missed_one():
    report = Report(inputs=[], span_ns=(0, 5_000_000_000), incidents=[])
    healthy = score_testbed.Row("healthy", testbed.Truth((), (), (), "", 1.0, 2.0), report, 0.5)
    missed = score_testbed.Row("delay", testbed.Truth(("c23",), (), (), "10.0.0.3", 1.0, 2.0), report, 0.5)
    assert healthy.cells()[-1] == "right"
    assert missed.cells()[-1] == "nothing was found"
    page = score_testbed.page([healthy, missed], "2026-01-01")
    assert "1 of 2 folders right" in page
    assert "0 false alarms" in page
    assert all(len(row.cells()) == len(score_testbed.HEAD) for row in (healthy, missed))


def test_without_samples_it_says_so(monkeypatch, capsys):
    monkeypatch.delenv("SKEWSCOPE_SAMPLES", raising=False)
    assert score_testbed.main([]) == 3
    assert "SKEWSCOPE_SAMPLES" in capsys.readouterr().err
