"""Swim lanes."""

from skewscope.app.render.figures.lanes import MAX_MEMBERS, lane_figures
from skewscope.app.render.figures.names import names_of
from skewscope.core.report import Lanes, LaneSpan


def test_healthy_first_on_one_scale(straggler):
    (figure,) = lane_figures(straggler, names_of(straggler))
    healthy, faulty = figure.panels
    assert (healthy.faulty, faulty.faulty) == (False, True)
    assert healthy.ticks == faulty.ticks
    assert [r.name for r in faulty.rows] == ["rank 0", "rank 1", "rank 2", "rank 3"]
    assert [r.held for r in faulty.rows] == ["42 ms", "42 ms", "96 ms", "42 ms"]


def test_only_the_culprits_long_own_time_is_hot(straggler):
    (figure,) = lane_figures(straggler, names_of(straggler))
    assert figure.hot
    assert [[r.hot for r in p.rows] for p in figure.panels] == [[False] * 4, [False, False, True, False]]


def test_bars_stay_inside_and_visible(straggler):
    (figure,) = lane_figures(straggler, names_of(straggler))
    for panel in figure.panels:
        for row in panel.rows:
            for bar in row.bars:
                assert bar.width >= 2
                assert 0 <= bar.x <= 1000
    assert "n2.pcap.gz frame 10235" in figure.panels[0].rows[2].bars[0].tip


def test_many_members_keep_the_culprit(straggler):
    spans = [LaneSpan(f"10.9.{k // 200}.{k % 200}", "own", 0, 10) for k in range(100)]
    straggler.lanes = [Lanes("g", "faulty", 0, 20, [*spans, LaneSpan("10.77.0.12", "own", 0, 20)])]
    (panel,) = lane_figures(straggler, names_of(straggler))[0].panels
    assert len(panel.rows) == MAX_MEMBERS
    assert panel.hidden == 101 - MAX_MEMBERS
    assert any(r.culprit for r in panel.rows)


def test_empty_lanes_are_left_out(straggler):
    straggler.lanes = [Lanes("g", "healthy", 5, 5)]
    assert lane_figures(straggler, names_of(straggler)) == []
