import grimp

from tools.contracts import without_tests


def test_only_test_modules_leave_the_graph():
    graph = grimp.ImportGraph()
    for module in ("p.conditions.c20.detector", "p.conditions.c20.test_c20", "p.conftest", "p.testing"):
        graph.add_module(module)
    assert without_tests(graph).modules == {"p.conditions.c20.detector", "p.testing"}
