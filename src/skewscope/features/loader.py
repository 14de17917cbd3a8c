"""Finds the feature families: every module of this package that defines FEATURE."""

from __future__ import annotations

import importlib
import pkgutil

import skewscope.features as package
from skewscope.core.features import Feature


def load_all() -> list[Feature]:
    """Return one fresh instance of each family, in an order that satisfies NEEDS.

    Raises ValueError where two families share a scope or a need cannot be met.
    """
    found: dict[str, Feature] = {}
    for module in sorted(m.name for m in pkgutil.iter_modules(package.__path__)):
        kind = getattr(importlib.import_module(f"{package.__name__}.{module}"), "FEATURE", None)
        if kind is None:
            continue
        if kind.SPEC.scope in found:
            raise ValueError(f"features: two families for scope {kind.SPEC.scope!r}")
        found[kind.SPEC.scope] = kind()
    ordered: dict[str, Feature] = {}
    while len(ordered) < len(found):
        ready = [s for s, f in found.items() if s not in ordered and all(n in ordered for n in f.NEEDS)]
        if not ready:
            stuck = {s: list(f.NEEDS) for s, f in found.items() if s not in ordered}
            raise ValueError(f"features: needs that cannot be met: {stuck}")
        ordered.update((s, found[s]) for s in ready)
    return list(ordered.values())
