"""The stream waterfall."""

from skewscope.app.render.figures.names import names_of
from skewscope.app.render.figures.streams import MAX_ROWS, Band, stacked, stream_figure
from skewscope.core.report import Report, StreamRow

MS = 1_000_000


def test_rows_and_bands(straggler):
    figure = stream_figure(straggler, names_of(straggler))
    assert figure is not None
    assert len(figure.rows) == 14
    assert figure.rows[0].ttft == "260 ms"
    assert figure.rows[-1].ttft == "410 ms"
    assert figure.rows[-1].open_end
    assert "not finished" in figure.rows[-1].tip
    assert figure.bands[0].label == "c20"
    assert not figure.bands[0].cut


def test_a_stall_is_found():
    chunks = [k * 50 * MS for k in range(1, 11)] + [2_000 * MS, 2_050 * MS]
    row = StreamRow("10.0.0.1", "10.0.0.2:80", MS, 40 * MS, 2_060 * MS, chunks)
    figure = stream_figure(Report([], (0, 3_000 * MS), streams=[row]), names_of(Report([], (0, 1))))
    assert figure is not None
    assert [text for _, _, text in figure.rows[0].stalls] == ["1.50 s"]


def test_many_are_thinned(straggler):
    straggler.streams = straggler.streams * 10
    figure = stream_figure(straggler, names_of(straggler))
    assert figure is not None
    assert len(figure.rows) == MAX_ROWS
    assert figure.hidden == 140 - MAX_ROWS


def test_parts_that_were_not_seen():
    rows = [
        StreamRow("a", "b", None, None, None),
        StreamRow("a", "b", None, 5, None, [5]),
        StreamRow("a", "b", 7, None, 9),
    ]
    report = Report([], (0, 10), streams=rows)
    figure = stream_figure(report, names_of(report))
    assert figure is not None
    assert len(figure.rows) == 2
    report.streams = rows[:1]
    assert stream_figure(report, names_of(report)) is None


def test_overlapping_bands_get_rows():
    bands = stacked([Band(0, 50, "a"), Band(20, 50, "b"), Band(60, 10, "c")])
    assert [b.row for b in bands] == [0, 1, 0]


def test_an_open_stream_is_silent_to_the_end():
    chunks = [k * 50 * MS for k in range(1, 11)]
    row = StreamRow("10.0.0.1", "10.0.0.2:80", MS, 40 * MS, None, chunks)
    report = Report([], (0, 3_000 * MS), streams=[row])
    figure = stream_figure(report, names_of(report))
    assert figure is not None
    assert figure.rows[0].stalls[-1][1] == 1000
    assert "to the end of the captures" in figure.rows[0].stalls[-1][2]
