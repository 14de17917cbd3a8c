"""Small multiples."""

from skewscope.app.render.figures.names import names_of
from skewscope.app.render.figures.series import MAX_POINTS, series_charts
from skewscope.core.report import Report, Series


def test_evidence_first_and_the_culprit_on_top(straggler):
    charts = series_charts(straggler, names_of(straggler))
    assert charts[0].name == "own_time_p95_s"
    assert charts[0].lines[-1].culprit
    assert charts[0].lines[-1].name == "rank 2"
    assert charts[0].summary.startswith("rank 2: 41 ms before, 9")


def test_gaps_are_gaps_and_single_points_are_dots():
    series = Series("host", "a", "x", "1", [0, 1, 2, 3, 4], [1.0, 2.0, None, 5.0, None])
    (chart,) = series_charts(Report([], (0, 4), series=[series]), names_of(Report([], (0, 4))))
    assert chart.lines[0].path.count("M") == 2
    assert chart.lines[0].dots.endswith("h0")


def test_long_series_keep_their_peak():
    values: list[float | None] = [1.0] * 5_000
    values[3_333] = 50.0
    series = Series("host", "a", "x", "1", list(range(5_000)), values)
    (chart,) = series_charts(Report([], (0, 5_000), series=[series]), names_of(Report([], (0, 1))))
    assert chart.lines[0].path.count("L") <= MAX_POINTS
    assert " 0L" in chart.lines[0].path or chart.peak == "50"


def test_constant_and_unknown_series():
    flat = Series("host", "a", "flat", "1", [0, 1], [0.0, 0.0])
    empty = Series("host", "a", "empty", "1", [0, 1], [None, None])
    charts = series_charts(Report([], (0, 1), series=[flat, empty]), names_of(Report([], (0, 1))))
    assert [c.name for c in charts] == ["flat"]
