"""Import contracts that leave test files out of the graph.

Tests may import upwards; a condition keeps its test in its own folder, and import-linter's wildcards
cannot name `test_*`. So the modules are removed before import-linter's own contracts look.
"""

from grimp import ImportGraph
from importlinter import ContractCheck
from importlinter.contracts.forbidden import ForbiddenContract
from importlinter.contracts.independence import IndependenceContract
from importlinter.contracts.layers import LayersContract


def without_tests(graph: ImportGraph) -> ImportGraph:
    """Remove every module named `test_*` or `conftest` from the graph and return it."""
    for module in sorted(graph.modules):
        last = module.rpartition(".")[2]
        if last == "conftest" or last.startswith("test_"):
            graph.remove_module(module)
    return graph


class CodeLayers(LayersContract):
    """Layers, tests apart."""

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Check the graph without its tests."""
        return super().check(without_tests(graph), verbose)


class CodeForbidden(ForbiddenContract):
    """Forbidden imports, tests apart."""

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Check the graph without its tests."""
        return super().check(without_tests(graph), verbose)


class CodeIndependence(IndependenceContract):
    """Independence, tests apart."""

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Check the graph without its tests."""
        return super().check(without_tests(graph), verbose)
