"""The picture of who talks to whom."""

from skewscope.app.render.figures.names import names_of
from skewscope.app.render.figures.topology import MAX_NODES, topology
from skewscope.core.report import Edge, HostRole, Report


def test_everybody_has_a_place_inside(straggler):
    picture = topology(straggler, names_of(straggler))
    assert picture is not None
    for drawing in (picture.wide, picture.narrow):
        assert len(drawing.nodes) == 6
        assert len({(n.x, n.y) for n in drawing.nodes}) == 6
        for node in drawing.nodes:
            assert 0 <= node.x <= drawing.width
            assert 0 <= node.y <= drawing.height


def test_roles_give_shapes_and_states(straggler):
    picture = topology(straggler, names_of(straggler))
    assert picture is not None
    nodes = {n.name: n for n in picture.wide.nodes}
    assert nodes["client 1"].shape == "square"
    assert nodes["router"].shape == "diamond"
    assert nodes["rank 2"].state == "culprit"
    assert nodes["rank 1"].state == "victim"
    assert nodes["client 1"].x < nodes["router"].x < nodes["rank 0"].x


def test_both_directions_are_one_line(straggler):
    straggler.edges.append(Edge("10.77.0.20", "10.77.0.30", "requests", 100, 1))
    picture = topology(straggler, names_of(straggler))
    assert picture is not None
    assert len(picture.wide.wires) == 6


def test_a_crowd_keeps_the_culprit(straggler):
    straggler.hosts = [HostRole(f"10.1.{k}.1", "", ["client"]) for k in range(100)] + straggler.hosts
    picture = topology(straggler, names_of(straggler))
    assert picture is not None
    assert len(picture.wide.nodes) == MAX_NODES
    assert picture.hidden == 106 - MAX_NODES
    assert any(n.state == "culprit" for n in picture.wide.nodes)


def test_no_hosts_no_picture():
    report = Report([], (0, 1))
    assert topology(report, names_of(report)) is None
